import java.util.concurrent.locks.ReentrantLock;

/** Four threads enter amounts under one ReentrantLock. */
public class Ledger {
    static final ReentrantLock lock = new ReentrantLock();
    static int total;

    static int audit(int key) {
        int value = key;
        for (int i = 0; i < 200_000; i++) value = value * 31 + Integer.rotateLeft(value, 5);
        return value & 1023;
    }

    static void enter(int key) {
        lock.lock();
        try {
            total += audit(key);
        } finally {
            lock.unlock();
        }
    }

    static void work(int rounds) {
        for (int i = 0; i < rounds; i++) enter(i);
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[4];
        for (int k = 0; k < threads.length; k++) {
            threads[k] = new Thread(() -> work(rounds), "clerk-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
