// An ordinary Java service: `GET /` sorts random text, and waits WAIT_MS milliseconds. Its eight
// threads limit it.
//
// Not here: how it is started and measured (../lib/rows_services.py).

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

public class Pool {
    static final int THREADS = 8;

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        int waitMs = Integer.parseInt(System.getenv("WAIT_MS"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(THREADS));
        server.createContext("/", exchange -> {
            var words = new ArrayList<String>();
            for (int i = 0; i < 200; i++) {
                words.add(Integer.toString(ThreadLocalRandom.current().nextInt(1_000_000)));
            }
            Collections.sort(words);
            try {
                Thread.sleep(waitMs);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            byte[] body = String.join(" ", words.subList(0, 20)).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
