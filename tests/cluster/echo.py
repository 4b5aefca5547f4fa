# tests/cluster/echo.py -- repeats beacons that it hears, from another address.
#
#   echo.py HEAR COUNT NOISE   hears beacons of HEAR senders by IPv6 multicast,
#                              sends the first of each again COUNT times, then
#                              NOISE that are none; prints how many were sent
import socket
import struct
import sys

GROUP, PORT, INTERFACE = "ff12::8053:4841", 18372, "eth0"


def main():
    hear, count, noise = map(int, sys.argv[1:])
    index = socket.if_nametoindex(INTERFACE)
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("::", PORT))
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                 socket.inet_pton(socket.AF_INET6, GROUP)
                 + struct.pack("I", index))
    s.settimeout(30)
    heard = {}
    while len(heard) < hear:
        datagram, sender = s.recvfrom(2048)
        heard.setdefault(sender[0], datagram)
    out = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    sent = 0
    for datagram in list(heard.values()) * count + [b"SHBN" + bytes(68)] * noise:
        out.sendto(datagram, (GROUP, PORT, 0, index))
        sent += 1
    print(sent)


if __name__ == "__main__":
    main()
