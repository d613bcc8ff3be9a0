import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;

/** Four threads sell one article: they compute while H2 keeps the article's row locked for them. */
public class Till {
    static final String URL = "jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=60000";

    static int price(int key) {
        int value = key;
        for (int i = 0; i < 1_000_000; i++) value = value * 31 + Integer.rotateLeft(value, 5);
        return value & 1023;
    }

    static void sell(Connection connection, PreparedStatement update, int key) throws Exception {
        update.executeUpdate();
        price(key);
        connection.commit();
    }

    static void work(int rounds) {
        try (Connection connection = DriverManager.getConnection(URL)) {
            connection.setAutoCommit(false);
            PreparedStatement update = connection.prepareStatement("UPDATE article SET sold = sold + 1 WHERE id = 1");
            for (int i = 0; i < rounds; i++) sell(connection, update, i);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        try (Connection connection = DriverManager.getConnection(URL); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE article(id INT PRIMARY KEY, sold INT)");
            statement.execute("INSERT INTO article VALUES (1, 0)");
        }
        Thread[] threads = new Thread[4];
        for (int k = 0; k < threads.length; k++) {
            threads[k] = new Thread(() -> work(rounds), "till-" + k);
            threads[k].start();
        }
        for (Thread thread : threads) thread.join();
    }
}
