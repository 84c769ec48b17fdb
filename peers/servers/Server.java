// An echo server on JSSE: java Server.java PORT FOLDER MODE
import java.io.ByteArrayInputStream;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public class Server {
    static Certificate[] certificates(Path file) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        return factory
            .generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)))
            .toArray(new Certificate[0]);
    }

    static PrivateKey key(Path file) throws Exception {
        String body = Files.readString(file).replaceAll("-----[^-]+-----|\\s", "");
        byte[] der = Base64.getDecoder().decode(body);
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(der));
    }

    static void echo(SSLSocket socket) {
        try (socket) {
            socket.getInputStream().transferTo(socket.getOutputStream());
        } catch (Exception error) {
            System.out.println(error);
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[1]);
        String mode = args[2];
        KeyStore own = KeyStore.getInstance("PKCS12");
        own.load(null, null);
        own.setKeyEntry("server", key(folder.resolve("key.pem")), new char[0],
            certificates(folder.resolve("chain.pem")));
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(own, new char[0]);
        KeyStore roots = KeyStore.getInstance("PKCS12");
        roots.load(null, null);
        roots.setCertificateEntry("root", certificates(folder.resolve("client-ca.pem"))[0]);
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(roots);
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        SSLServerSocket server = (SSLServerSocket) context.getServerSocketFactory()
            .createServerSocket(Integer.parseInt(args[0]), 64, InetAddress.getByName("127.0.0.1"));
        server.setEnabledProtocols(new String[] {"TLSv1.3"});
        server.setWantClientAuth(mode.equals("optional"));
        if (mode.equals("required")) {
            server.setNeedClientAuth(true);
        }
        while (true) {
            SSLSocket socket = (SSLSocket) server.accept();
            Thread thread = new Thread(() -> echo(socket));
            thread.setDaemon(true);
            thread.start();
        }
    }
}
