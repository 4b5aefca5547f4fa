# tests/apps/chat_tls_test.py -- `shoal chat --url https://...`: which certificates it
# takes, and why it refuses others.
import os
import socket
import ssl
import subprocess
import threading

from chat_test import Server, finish
from support import DEADLINE_S, World, main


class TlsServer(Server):
    """The other server, by TLS."""

    def __init__(self, certificate):
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True,
                                          do_handshake_on_connect=False)
        self.url = f"https://localhost:{self.server_port}/v1"
        self.answers = [["Hel", "lo", finish("stop")]]

    def handle_error(self, *_):
        """A client that refuses the certificate is no error here."""


class ChatTls(World):
    def setUp(self):
        super().setUp()
        # What this machine trusts is not to matter.
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            self.env.pop(name, None)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
                     "-out", "ca.pem", "-days", "30", "-subj", "/CN=a test's CA",
                     "-addext", "basicConstraints=critical,CA:TRUE")

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def certificate(self, names, days=30, issuer="ca"):
        """Key and certificate in one file; without an issuer it signs itself."""
        self.write("names.cnf", f"subjectAltName={names}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", "one.key",
                     "-out", "one.csr", "-subj", "/CN=one")
        by = (["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
              if issuer else ["-signkey", "one.key"])
        self.openssl("x509", "-req", "-in", "one.csr", *by, "-out", "one.pem",
                     "-days", str(days), "-extfile", "names.cnf")
        both = self.folder / "server.pem"
        both.write_text((self.folder / "one.key").read_text()
                        + (self.folder / "one.pem").read_text())
        return both

    def chat(self, url, *arguments, env=None, said="Hi"):
        return subprocess.run(
            [self.program, "chat", "--url", url, *arguments], cwd=self.folder,
            env={**self.env, **(env or {})}, input=said, text=True,
            capture_output=True, timeout=DEADLINE_S, check=False)

    def refused(self, done, *parts, code=1):
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_a_certificate_of_a_named_authority_is_taken(self):
        made = self.certificate("DNS:localhost,IP:127.0.0.1")
        for arguments, env in ((["--ca", "ca.pem"], {}),
                               ([], {"SSL_CERT_FILE": "ca.pem"})):
            with TlsServer(made) as server:
                done = self.chat(server.url, *arguments, env=env)
                self.assertEqual((done.returncode, done.stdout), (0, "Hello\n"),
                                 done)
                self.assertEqual(len(server.requests), 1)
        with TlsServer(made) as server:  # an address is a name, too
            done = self.chat(server.url.replace("localhost", "127.0.0.1"),
                             "--ca", "ca.pem")
            self.assertEqual(done.stdout, "Hello\n", done)

    def test_long_answers_arrive_whole(self):
        with TlsServer(self.certificate("DNS:localhost")) as server:
            pieces = [f"{i:5}" * 400 for i in range(300)]
            server.answers = [[*pieces, finish("stop")]]
            done = self.chat(server.url, "--ca", "ca.pem", "--system",
                             "s" * 100000)
            self.assertEqual(done.stdout, "".join(pieces) + "\n")
            system = server.requests[0]["messages"][0]["content"]
            self.assertEqual(len(system), 100000)

    def test_a_refusal_is_read_while_a_long_question_is_sent(self):
        """A server that answers without reading what still comes, and keeps the
        connection until its client has gone."""
        body = b'{"error":{"message":"that is too much for me"}}'
        answer = (b"HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\n"
                  b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(body), body))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate("DNS:localhost"))
        gone, threads = threading.Event(), []

        def refuse(raw):
            with context.wrap_socket(raw, server_side=True) as one:
                one.recv(1)
                one.sendall(answer)
                gone.wait(DEADLINE_S)

        def accept(listener):
            try:
                while True:
                    threads.append(threading.Thread(
                        target=refuse, args=(listener.accept()[0],)))
                    threads[-1].start()
            except OSError:
                pass  # it is closed

        with socket.create_server(("127.0.0.1", 0)) as listener:
            # Little is read ahead, so a client cannot send all.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
            server = threading.Thread(target=accept, args=(listener,))
            server.start()
            done = self.chat(
                f"https://localhost:{listener.getsockname()[1]}/v1", "m",
                "--ca", "ca.pem", said="x" * 4_000_000)
            gone.set()
            listener.shutdown(socket.SHUT_RDWR)
            server.join()
            for thread in threads:
                thread.join()
        self.refused(done, "that is too much for me")

    def test_other_certificates_are_refused_and_nothing_is_sent(self):
        for names, options, parts in (
                ("DNS:other.org,DNS:b.org", {}, ["'localhost'",
                                                 "other.org, b.org"]),
                ("IP:10.1.2.3", {}, ["'localhost'", "10.1.2.3"]),
                ("DNS:localhost", {"days": -1}, ["expired on"]),
                ("DNS:localhost", {"issuer": None}, ["no authority", "--ca",
                                                     "SSL_CERT_FILE"])):
            with TlsServer(self.certificate(names, **options)) as server:
                done = self.chat(server.url, "m", "--ca", "ca.pem")
                self.refused(done, "certificate", *parts)
                self.assertEqual(server.requests, [])
                self.assertEqual(server.keys, [])
        with TlsServer(self.certificate("DNS:localhost")) as server:
            # By the system's authorities, of which the test's is none.
            self.refused(self.chat(server.url, "m"), "no authority", "--ca")
            self.assertEqual(server.requests, [])

    def test_mistakes_are_named(self):
        self.write("no.pem", "no certificate\n")
        self.refused(self.chat("https://localhost:1", "--ca", "no.pem"),
                     "--ca", "no.pem", "PEM")
        self.refused(self.chat("https://localhost:1", "--ca", "absent.pem"),
                     "--ca", "absent.pem")
        self.refused(self.chat("https://localhost:1",
                               env={"SSL_CERT_FILE": "absent.pem"}),
                     "SSL_CERT_FILE", "absent.pem")
        self.refused(self.chat("http://localhost:1", "--ca", "ca.pem"),
                     "--ca", "https://")
        with Server() as server:  # it speaks HTTP alone
            self.refused(self.chat(server.url.replace("http:", "https:"),
                                   "m", "--ca", "ca.pem"), "TLS")

    def test_a_server_that_says_nothing_is_given_up(self):
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            url = f"https://127.0.0.1:{mute.getsockname()[1]}/v1"
            self.refused(self.chat(url, "m", "--ca", "ca.pem"), "TLS in time")

    def test_an_answer_that_is_cut_is_no_answer(self):
        """The connection ends, without TLS saying so, before the body does."""
        made = self.certificate("DNS:localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()

            def serve():
                while True:
                    try:
                        raw, _ = listener.accept()
                    except OSError:
                        return  # the test is over
                    with raw:
                        secure = context.wrap_socket(raw, server_side=True)
                        secure.recv(65536)
                        secure.sendall(b"HTTP/1.1 200 OK\r\n\r\n{\"data\": []}")
                        os.close(secure.detach())
            threading.Thread(target=serve, daemon=True).start()
            url = f"https://localhost:{listener.getsockname()[1]}/v1"
            self.refused(self.chat(url, "m", "--ca", "ca.pem"), "cut")


if __name__ == "__main__":
    main()
