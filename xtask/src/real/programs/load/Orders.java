import java.util.concurrent.ConcurrentHashMap;

/** Four threads count into one entry of a ConcurrentHashMap, and compute inside of compute(). */
public class Orders {
    static final ConcurrentHashMap<String, Long> totals = new ConcurrentHashMap<>();

    static long price(long order) {
        long value = order;
        for (int i = 0; i < 60000; i++) value = value * 31 + Long.rotateLeft(value, 7);
        return value & 255;
    }

    static void book(int rounds) {
        for (int i = 0; i < rounds; i++) {
            long order = i;
            totals.compute("today", (key, old) -> (old == null ? 0 : old) + price(order));
        }
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[4];
        for (int k = 0; k < threads.length; k++) {
            threads[k] = new Thread(() -> book(rounds), "clerk-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
