import java.util.LinkedHashMap;
import java.util.Map;

/** Two threads with a cache each: what lives long and is then let go makes every collection copy much. */
public class Caches {
    static void fill(int rounds) {
        Map<Integer, int[]> cache = new LinkedHashMap<>();
        for (int i = 0; i < rounds; i++) {
            cache.put(i, new int[100]);
            if (cache.size() > 150_000) cache.remove(cache.keySet().iterator().next());
        }
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[2];
        for (int k = 0; k < threads.length; k++) {
            threads[k] = new Thread(() -> fill(rounds), "cache-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
