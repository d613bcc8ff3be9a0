import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Eight clients ask a pool of two threads, whose answers take 5 ms of sleep each, and wait for them. */
public class Pool {
    static int lookup(int key) throws InterruptedException {
        Thread.sleep(5);
        return key * 31;
    }

    static void ask(ExecutorService pool, int rounds) {
        for (int i = 0; i < rounds; i++) {
            int key = i;
            try {
                pool.submit(() -> lookup(key)).get();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Thread[] clients = new Thread[8];
        for (int k = 0; k < clients.length; k++) {
            clients[k] = new Thread(() -> ask(pool, rounds), "client-" + k);
            clients[k].start();
        }
        for (Thread client : clients) client.join();
        pool.shutdown();
    }
}
