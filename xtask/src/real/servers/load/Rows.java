import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.LongAdder;

/** Sixteen threads answer, and each needs one of a few connections, on which a query takes eight milliseconds. */
public class Rows {
    static Semaphore connections;
    static final LongAdder asleep = new LongAdder();
    static final long begun = System.nanoTime();

    static byte[] query() throws Exception {
        connections.acquire();
        try {
            long before = System.nanoTime();
            Thread.sleep(8);
            asleep.add(System.nanoTime() - before);
            return "row".getBytes();
        } finally {
            connections.release();
        }
    }

    public static void main(String[] args) throws Exception {
        connections = new Semaphore(Integer.parseInt(args[1]));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 100);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> {
            try {
                byte[] row = query();
                exchange.sendResponseHeaders(200, row.length);
                exchange.getResponseBody().write(row);
                String clock = String.format("asleep for %.2f s of %.2f s", asleep.sum() / 1e9, (System.nanoTime() - begun) / 1e9);
                Files.writeString(Path.of("clock"), clock);
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
            exchange.close();
        });
        server.start();
    }
}
