"""A name server on loopback that knows one name: python3 names.py NAME ADDRESS."""

import socket
import sys

name, address = sys.argv[1:]
question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
while True:
    query, client = server.recvfrom(4096)
    end = 12 + len(question)
    is_known = query[12:end].lower() == question
    is_a = query[end : end + 2] == b"\0\1"
    # A response, recursion available; 3 says that there is no such name.
    flags = b"\x81\x80" if is_known else b"\x81\x83"
    answer = b""
    if is_known and is_a:
        answer = b"\xc0\x0c\0\1\0\1" + (60).to_bytes(4, "big") + b"\0\4" + socket.inet_aton(address)
    counts = b"\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0"
    server.sendto(query[:2] + flags + counts + query[12 : end + 4] + answer, client)
