import java.util.concurrent.locks.ReentrantLock;

/** Four threads change one stock under a ReentrantLock. With a second argument they compute before they lock. */
public class Stock {
    static final ReentrantLock lock = new ReentrantLock();
    static final int[] pieces = new int[1024];
    static boolean before;

    static int digest(int key) {
        int value = key;
        for (int i = 0; i < 4000; i++) value = value * 31 + Integer.rotateLeft(value, 5);
        return value & 1023;
    }

    static void reserve(int key) {
        int early = before ? digest(key) : 0;
        lock.lock();
        try {
            pieces[before ? early : digest(key)]++;
        } finally {
            lock.unlock();
        }
    }

    static void work(int rounds) {
        for (int i = 0; i < rounds; i++) reserve(i);
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        before = arguments.length > 1;
        Thread[] threads = new Thread[4];
        for (int k = 0; k < threads.length; k++) {
            threads[k] = new Thread(() -> work(rounds), "worker-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
