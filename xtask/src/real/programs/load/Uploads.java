import java.util.Random;
import java.util.concurrent.Semaphore;
import java.util.zip.Deflater;

/** Four threads compress, but a semaphore lets one at a time. */
public class Uploads {
    static final Semaphore gate = new Semaphore(1);
    static final byte[] data = new byte[200_000];

    static int compress(byte[] out) {
        Deflater deflater = new Deflater(6);
        deflater.setInput(data);
        deflater.finish();
        int length = 0;
        while (!deflater.finished()) length += deflater.deflate(out);
        deflater.end();
        return length;
    }

    static void upload() throws InterruptedException {
        byte[] out = new byte[8192];
        gate.acquire();
        try {
            compress(out);
        } finally {
            gate.release();
        }
    }

    static void work(int rounds) {
        try {
            for (int i = 0; i < rounds; i++) upload();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        new Random(3).nextBytes(data);
        for (int i = 0; i < data.length; i++) data[i] &= 15;
        int rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[4];
        for (int k = 0; k < threads.length; k++) {
            threads[k] = new Thread(() -> work(rounds), "uploader-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
