import java.util.stream.IntStream;

/** A parallel stream of 16 parts, one of which has most of the work. */
public class Weights {
    static int weigh(int part, int rounds) {
        int value = part;
        for (int i = 0; i < (part == 3 ? 40 : 1) * rounds; i++) value = value * 31 + Integer.rotateLeft(value, 5);
        return value;
    }

    public static void main(String[] arguments) {
        int times = Integer.parseInt(arguments[0]);
        int sum = 0;
        for (int i = 0; i < times; i++) sum += IntStream.range(0, 16).parallel().map(p -> weigh(p, 400_000)).sum();
        System.out.println(sum);
    }
}
