import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** One thread prepares for long what a pool of four threads answers at once. */
public class Idle {
    static int mix(int key, int rounds) {
        int value = key;
        for (int i = 0; i < rounds; i++) value = value * 31 + Integer.rotateLeft(value, 5);
        return value;
    }

    static int prepare(int key) {
        return mix(key, 900_000);
    }

    static int answer(int key) {
        return mix(key, 2_000);
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            int key = prepare(i);
            sum += pool.submit(() -> answer(key)).get();
        }
        pool.shutdown();
        System.out.println(sum);
    }
}
