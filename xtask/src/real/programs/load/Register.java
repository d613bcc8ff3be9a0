import java.util.HashMap;
import java.util.Map;

/** Four threads count values in one map. With a second argument they compute before they lock. */
public class Register {
    static final Map<Integer, Integer> seen = new HashMap<>();
    static boolean before;

    static int digest(int key) {
        int value = key;
        for (int i = 0; i < 4000; i++) value = value * 31 + Integer.rotateLeft(value, 5);
        return value & 1023;
    }

    static synchronized void register(int key) {
        seen.merge(before ? key : digest(key), 1, Integer::sum);
    }

    static void work(int rounds) {
        for (int i = 0; i < rounds; i++) register(before ? digest(i) : i);
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
