import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;

/** A tree of tasks whose first leaf has most of the work; "fine": each key of it is a leaf, of a pool of two. */
public class Tree extends RecursiveTask<Long> {
    static int leaf = 4;
    final int from, to;

    Tree(int from, int to) {
        this.from = from;
        this.to = to;
    }

    static long score(int key) {
        int turns = key < 4 ? 60_000_000 : 60_000;
        long value = key;
        for (int i = 0; i < turns; i++) value = value * 31 + Long.rotateLeft(value, 7);
        return value;
    }

    @Override
    protected Long compute() {
        if (to - from <= leaf) {
            long sum = 0;
            for (int key = from; key < to; key++) sum += score(key);
            return sum;
        }
        int middle = (from + to) / 2;
        Tree left = new Tree(from, middle), right = new Tree(middle, to);
        left.fork();
        return right.compute() + left.join();
    }

    public static void main(String[] arguments) {
        ForkJoinPool pool = ForkJoinPool.commonPool();
        if (arguments.length > 1) {
            leaf = 1;
            pool = new ForkJoinPool(2);
        }
        long sum = 0;
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) sum += pool.invoke(new Tree(0, 4096));
        System.out.println(sum);
    }
}
