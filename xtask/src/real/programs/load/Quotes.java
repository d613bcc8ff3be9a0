import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Eight futures at a time on a pool of one thread, which waits 8 ms for each. */
public class Quotes {
    static int fetchRate(int key) {
        try {
            Thread.sleep(8);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
        return key * 17;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        for (int round = 0; round < Integer.parseInt(arguments[0]); round++) {
            List<CompletableFuture<Integer>> all = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                int key = i;
                all.add(CompletableFuture.supplyAsync(() -> fetchRate(key), pool).thenApply(rate -> rate + 1));
            }
            for (CompletableFuture<Integer> future : all) future.get();
        }
        pool.shutdown();
    }
}
