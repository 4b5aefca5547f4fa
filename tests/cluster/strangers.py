# tests/cluster/strangers.py -- all that a stranger who reaches a port may do.
#
# They hold no cluster key. Each attack is a function of a port and a random
# generator; it returns what it counted. None of them may be let in: whatever
# answers them with application data is recorded in `let_in`.
import os
import pathlib
import resource
import select
import socket
import ssl
import subprocess
import threading

PROOF_BYTES = 60
TIMEOUT_S = 10
PATIENCE_S = 0.3  # with one that may say nothing

let_in = []


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def closed(s):
    """Reads until the other end closes; False if it does not in time."""
    try:
        while s.recv(65536):
            pass
        return True
    except (ConnectionError, BrokenPipeError):
        return True
    except (TimeoutError, OSError):
        return False


def send(s, data):
    try:
        s.sendall(data)
    except OSError:
        pass  # it has been closed already


def ports_of(pid):
    """(TCP ports listened on, UDP ports bound, Unix sockets) of a process."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    tcp, udp = set(), set()
    for kind, ports, wanted in (("tcp", tcp, "0A"), ("tcp6", tcp, "0A"),
                                ("udp", udp, None), ("udp6", udp, None)):
        for line in pathlib.Path(f"/proc/{pid}/net/{kind}").read_text(
                encoding="ascii").splitlines()[1:]:
            words = line.split()
            if words[9] in inodes and wanted in (None, words[3]):
                ports.add(int(words[1].rsplit(":", 1)[1], 16))
    return sorted(tcp), sorted(udp)


class Recorder:
    """A proxy that writes down what passes to `port`."""

    def __init__(self, port):
        self.port, self.bytes = port, bytearray()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def address(self):
        return "127.0.0.1:%d" % self.door.getsockname()[1]

    def _run(self):
        one, _ = self.door.accept()
        two = connect(self.port)
        while True:
            for s in select.select([one, two], [], [])[0]:
                data = s.recv(65536)
                if not data:
                    one.close()
                    two.close()
                    return
                if s is one:
                    self.bytes += data
                (two if s is one else one).sendall(data)


class Strangers:
    def __init__(self, folder, seed_bytes):
        self.recorded = seed_bytes
        key, cert = folder / "stranger.key", folder / "stranger.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out",
                        key], check=True, capture_output=True)
        subprocess.run(["openssl", "req", "-x509", "-key", key, "-out", cert,
                        "-subj", "/CN=shoal"], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.load_cert_chain(cert, key)

    def tls(self, port):
        s = connect(port)
        try:
            return self.context.wrap_socket(s)
        except OSError:
            s.close()
            raise

    def proof(self, port, data):
        """A TLS client of its own key that says `data` as its proof."""
        try:
            with self.tls(port) as s:
                s.sendall(data)
                s.settimeout(PATIENCE_S)
                answer = s.recv(65536)
                if answer:
                    let_in.append((port, data[:8], answer[:8]))
        except OSError:
            pass  # refused, or pushed out

    def random_bytes(self, port, rng):
        for _ in range(10):
            with connect(port) as s:
                send(s, rng.randbytes(rng.choice([1, 5, 100, 16384, 100000])))
        return 10

    def random_records(self, port, rng):
        """What looks like TLS, and is none."""
        for _ in range(10):
            body = rng.randbytes(rng.randrange(1, 500))
            with connect(port) as s:
                send(s, bytes([rng.choice([20, 21, 22, 23]), 3,
                               rng.choice([1, 3, 4])])
                     + len(body).to_bytes(2, "big") + body)
        return 10

    def random_frames(self, port, rng):
        for _ in range(3):
            self.proof(port, rng.randbytes(
                rng.choice([1, PROOF_BYTES, 1000, 100000])))
        return 3

    def replay(self, port, rng):
        """The bytes of a real session, whole and cut."""
        for cut in (len(self.recorded), rng.randrange(1, len(self.recorded))):
            with connect(port) as s:
                send(s, self.recorded[:cut])
                s.settimeout(PATIENCE_S)
                closed(s)
        return 2

    def oversize(self, port, rng):
        with connect(port) as s:  # one handshake message of 16 MiB
            send(s, b"\x16\x03\x01\x40\x00\x01\xff\xff\xff\x03\x03"
                 + rng.randbytes(16377))
            for _ in range(64):
                send(s, b"\x16\x03\x01\x40\x00" + rng.randbytes(16384))
        self.proof(port, (2**32 - 1).to_bytes(4, "little") * 100000)
        return 2

    def other_version(self, port, rng):
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname = False
        old.verify_mode = ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        try:
            with old.wrap_socket(connect(port)):
                let_in.append((port, b"TLS 1.2", b""))
        except OSError:
            pass
        for version in (0, 2, 4, 999):
            self.proof(port, (0x4c414853).to_bytes(4, "little")
                       + version.to_bytes(2, "little")
                       + rng.randbytes(PROOF_BYTES - 6))
        with connect(port) as s:
            send(s, b"GET / HTTP/1.1\r\nHost: shoal\r\n\r\n")
        return 6

    def many(self, port, count, held_max=1000):
        """Connections that say nothing, or one byte, and stay."""
        held = []
        for i in range(count):
            try:
                s = connect(port)
            except OSError:
                continue  # the backlog is full
            if i % 2:
                send(s, b"\x16")
            held.append(s)
            if len(held) >= held_max:
                held.pop(0).close()
        return held

    def datagrams(self, port, rng, count=100):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for _ in range(count):
                for address in ("127.0.0.1", "239.255.83.72"):
                    try:
                        s.sendto(rng.randbytes(rng.randrange(1, 1400)),
                                 (address, port))
                    except OSError:
                        pass
        return count


def more_descriptors():
    """@returns how many connections may be held at once."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return max(100, min(5000, most - 200))
