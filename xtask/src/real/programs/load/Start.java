/** Four threads need a class whose static initialiser computes for long. */
public class Start {
    static int rounds;

    static class Table {
        static final int[] VALUES = build();

        static int[] build() {
            int[] values = new int[4096];
            int x = 1;
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < values.length; i++) {
                    x = x * 31 + i;
                    values[i] ^= Integer.rotateLeft(x, round);
                }
            }
            return values;
        }
    }

    static int use(int key) {
        return Table.VALUES[key];
    }

    public static void main(String[] arguments) throws Exception {
        rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[4];
        for (int k = 0; k < threads.length; k++) {
            int key = k;
            threads[k] = new Thread(() -> use(key), "user-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
