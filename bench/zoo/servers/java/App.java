// An HTTP server with one planted limit, chosen by the words in $ZOO_JAVA (`threads=8 sleep_us=20000`); it prints its address.
//
// Not here: which limit is the truth of which case (../../truth.json).

import com.sun.net.httpserver.HttpServer;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

public class App {
    static final Map<String, Integer> SET = new HashMap<>();
    static final Object SHARED = new Object();
    static final List<Object> KEPT = new ArrayList<>();

    static int of(String name) {
        return SET.getOrDefault(name, 0);
    }

    // Work, not time: who has to wait for a core needs as much of it afterwards.
    static void burn(long us) {
        if (us == 0) {
            return;
        }
        var clock = ManagementFactory.getThreadMXBean();
        long end = clock.getCurrentThreadCpuTime() + us * 1000;
        while (clock.getCurrentThreadCpuTime() < end) {
        }
    }

    static void sleep(int us) throws InterruptedException {
        if (us > 0) {
            Thread.sleep(us / 1000, us % 1000 * 1000);
        }
    }

    public static void main(String[] args) throws Exception {
        for (String word : System.getenv().getOrDefault("ZOO_JAVA", "").trim().split(" +")) {
            String[] pair = word.split("=");
            if (pair.length == 2) {
                SET.put(pair[0], Integer.parseInt(pair[1]));
            }
        }
        for (int i = 0; i < of("live") * 8192; i++) {
            KEPT.add(new long[16]);
        }
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 1024);
        server.createContext("/items", exchange -> {
            try {
                burn(of("cpu_us"));
                sleep(of("sleep_us"));
                if (of("shared_us") > 0) {
                    synchronized (SHARED) {
                        sleep(of("shared_us"));
                    }
                }
                List<byte[]> garbage = new ArrayList<>();
                for (int i = 0; i < of("garbage") * 4; i++) {
                    garbage.add(new byte[256]);
                }
                byte[] body = new byte[Math.max(2, of("bytes"))];
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            } finally {
                exchange.close();
            }
        });
        server.setExecutor(of("threads") > 0 ? Executors.newFixedThreadPool(of("threads")) : Executors.newCachedThreadPool());
        server.start();
        System.out.println("127.0.0.1:" + server.getAddress().getPort());
    }
}
