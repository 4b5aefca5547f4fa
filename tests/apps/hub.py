# tests/apps/hub.py -- a hub of models in this process, for tests of pull.
#
# Two servers, as the real hub has them: one answers the API and hands out small
# files, and sends requests for large ones (Git LFS) to the other, by a redirect
# whose URL has a signature. Faults can be put on a file; each is used up by one
# request.
import hashlib
import http.server
import json
import pathlib
import re
import ssl
import threading
import urllib.parse

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
TOKEN = "hf_secretTokenOfTheTest"
SIGNATURE = "Signature=secretOfTheRedirect"


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    """A repository at one commit. Files in `large` are in Git LFS."""

    def __init__(self, files, large=(), commit="a" * 40, needs=None):
        self.files, self.large = files, set(large)
        self.commits = {"main": commit, commit: commit}
        self.needs = needs      # "token" or "gate"
        self.listing_faults = []
        self.faults = {}        # path -> [fault]
        self.lies = {}          # path -> fields of its entry in the list

    def hash_of(self, path):
        data = self.files[path]
        return (hashlib.sha256(data).hexdigest() if path in self.large
                else git_hash(data))

    def listing(self, commit):
        entries = []
        for path, data in self.files.items():
            entry = {"rfilename": path, "size": len(data),
                     "blobId": git_hash(data)}
            if path in self.large:
                entry["lfs"] = {"sha256": self.hash_of(path),
                                "size": len(data), "pointerSize": 130}
            entries.append({**entry, **self.lies.get(path, {})})
        return {"id": "x", "sha": commit, "siblings": entries}


def tiny_model(**more):
    """Files of a model that shoal can read, with a tokenizer that it does not
    take for text."""
    folder = GOLDEN / "tiny_llama"
    files = {name: (folder / name).read_bytes() for name in
             ("config.json", "generation_config.json", "model.safetensors")}
    return {**files, "README.md": b"# a model\n", "pytorch_model.bin": b"x" * 99,
            "onnx/model.onnx": b"y" * 99, **more}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None, length=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length",
                         str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def refuse(self, status, code=None):
        self.answer(status, b"no", {"X-Error-Code": code} if code else None)

    def do_GET(self):
        hub = self.server.hub
        hub.take(self.server.kind, self.path, dict(self.headers))
        path = urllib.parse.unquote(self.path.split("?")[0])
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)",
                                 path):
            return self.list_files(*found.groups())
        if found := re.fullmatch(r"(?:/cdn)?/([^/]+/[^/]+)/resolve/(\w+)/(.+)",
                                 path):
            return self.send_file(*found.groups())
        return self.refuse(404)

    def may_read(self, repository):
        sent = self.headers.get("Authorization")
        if self.server.kind == "cdn" or (sent is None and not repository.needs):
            return True
        if sent not in (None, f"Bearer {TOKEN}"):
            self.refuse(401)
        elif repository.needs == "gate":
            self.refuse(403 if sent else 401, "GatedRepo")
        elif sent is None:
            self.refuse(401, "RepoNotFound")
        else:
            return True
        return False

    def list_files(self, name, revision):
        repository = self.server.hub.repositories.get(name)
        if repository is None:
            return self.refuse(404, "RepoNotFound")
        if repository.listing_faults:
            fault = repository.listing_faults.pop(0)
            if isinstance(fault, bytes):
                return self.answer(200, fault)
            return self.answer(fault, b"later", {"Retry-After": "0"})
        if repository.needs != "gate" and not self.may_read(repository):
            return None
        if revision not in repository.commits:
            return self.refuse(404, "RevisionNotFound")
        return self.answer(200, json.dumps(
            repository.listing(repository.commits[revision])).encode())

    def send_file(self, name, commit, path):
        hub = self.server.hub
        repository = hub.repositories[name]
        if not self.may_read(repository):
            return None
        if path in repository.large and self.server.kind == "hub":
            return self.answer(302, b"moved", {
                "Location": f"{hub.cdn_url}/cdn{self.path}?{SIGNATURE}"})
        data = repository.files[path]
        faults = repository.faults.get(path, [])
        fault, size = (faults.pop(0) if faults else (None, 0))
        first, status, headers = 0, 200, {}
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and fault != "no ranges":
            first = int(wanted[1])
            if first >= len(data):
                return self.refuse(416)
            status = 206
            headers["Content-Range"] = \
                f"bytes {first}-{len(data) - 1}/{len(data)}"
        body = data[first:]
        if fault == "status":
            return self.answer(size, b"later", {"Retry-After": "0"})
        if fault == "other bytes":
            return self.answer(status, bytes(len(body)), headers)
        if fault == "length":  # says that there are more or fewer
            return self.answer(status, body[:size], headers, size)
        if fault == "to":  # another host, or protocol
            return self.answer(302, b"", {"Location": size})
        if fault in ("cut", "silent"):
            self.answer(status, body[:size], headers, len(body))
            self.wfile.flush()
            if fault == "silent":
                hub.silent.release()
                hub.ended.wait()
            self.close_connection = True
            return None
        return self.answer(status, body, headers)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that was stopped


class Hub:
    def __init__(self, certificate=None):
        """@param certificate  with its key: the first server speaks https"""
        self.repositories, self.requests = {}, []
        self._come = threading.Condition()  # guards requests
        self.silent = threading.Semaphore(0)  # a file has become silent
        self.ended = threading.Event()
        self._servers = {}
        for kind in ("hub", "cdn"):
            server = Server(("127.0.0.1", 0), Handler)
            server.hub, server.kind = self, kind
            if certificate and kind == "hub":
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                server.socket = context.wrap_socket(server.socket,
                                                    server_side=True)
            threading.Thread(target=server.serve_forever, args=(0.02,),
                             daemon=True).start()
            self._servers[kind] = server
        self.url, self.cdn_url = (
            f"http://127.0.0.1:{s.server_address[1]}"
            for s in self._servers.values())
        if certificate:
            self.url = self.url.replace("http", "https", 1)

    def close(self):
        self.ended.set()
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def take(self, *request):
        with self._come:
            self.requests.append(request)
            self._come.notify_all()

    def wait_asked(self, count, kind, part):
        with self._come:
            return self._come.wait_for(
                lambda: len(self.asked(kind, part)) >= count, timeout=60)

    def asked(self, kind=None, part=""):
        """(path, headers) of requests."""
        return [(path, headers) for one, path, headers in self.requests
                if kind in (None, one) and part in path]
