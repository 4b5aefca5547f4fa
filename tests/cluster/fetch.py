# tests/cluster/fetch.py -- asks a node for a blob, as commands do.
#
# The request of runtime/wire/node.proto by hand, over the node's control
# socket, so that a test can begin a fetch and look later what has become of it.
import contextlib
import os
import socket
import struct

VERSION = 2
NOT_FOUND, AGAIN_LATER = 3, 4  # reply_code of runtime/wire/messages.hpp
DIGEST_BYTES = 32


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """Of a message: bytes, or a number."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def fields(message):
    """number -> value, of those that are bytes or small numbers."""
    def take(at):
        value, shift = 0, 0
        while True:
            value |= (message[at] & 0x7f) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 0x80:
                return value, at
    found, at = {}, 0
    while at < len(message):
        key, at = take(at)
        if key & 7 == 0:
            found[key >> 3], at = take(at)
        elif key & 7 == 1:
            at += 8
        else:
            size, at = take(at)
            found[key >> 3] = message[at:at + size]
            at += size
    return found


class Fetch:
    """Of a blob that no peer has: each has to say so, or to be lost, before
    it has come to its end."""

    def __init__(self, peer):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(peer.store / "control.sock"))
        get = field(1, os.urandom(DIGEST_BYTES)) + field(3, 1)
        body = field(1, VERSION) + field(9, field(1, 1) + field(6, get))
        self.question = struct.pack("<I", len(body)) + body
        self.answer = b""
        self.code = AGAIN_LATER
        self.socket.sendall(self.question)
        self.socket.setblocking(False)

    def ended(self):
        """Asks again if it has not; does not wait."""
        with contextlib.suppress(BlockingIOError):
            self.answer += self.socket.recv(1 << 16)
        if len(self.answer) >= 4:
            size = struct.unpack("<I", self.answer[:4])[0]
            if len(self.answer) >= 4 + size:
                reply = fields(fields(self.answer[4:4 + size])[10])
                self.answer = self.answer[4 + size:]
                self.code = reply[2]
                if self.code == AGAIN_LATER:
                    self.socket.sendall(self.question)
        if self.code == AGAIN_LATER:
            return False
        self.socket.close()
        assert self.code == NOT_FOUND, self.code
        return True
