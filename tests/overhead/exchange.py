"""One end of a TCP exchange: rounds of so many bytes each way, timed on the machine's clock.

`python exchange.py listen|connect ADDRESS ROUNDS REPEATS`; ROUNDS is JSON, pairs of bytes: of the
listening end, of the other. Prints [[start, end], ...] of the repeats, on the monotonic clock,
which all network namespaces of a machine share.
"""

import json
import socket
import sys
import threading
import time

PORT = 7007
WARM = 4_000_000
"""Bytes each way before anything is timed, so that TCP's window is open."""


def meet(listens: bool, address: str) -> socket.socket:
    if listens:
        with socket.create_server((address, PORT)) as server:
            server.settimeout(20)
            return server.accept()[0]
    for _ in range(200):
        try:
            return socket.create_connection((address, PORT), timeout=20)
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nobody listens")


def swap(line: socket.socket, send: int, receive: int) -> None:
    """Send and receive at the same time; return when all that was due has come."""
    sender = threading.Thread(target=line.sendall, args=(bytes(send),))
    sender.start()
    left, buffer = receive, bytearray(1 << 16)
    while left:
        got = line.recv_into(buffer, min(left, len(buffer)))
        if not got:
            raise SystemExit("the other end is gone")
        left -= got
    sender.join()


def main() -> None:
    role, address, text, repeats = sys.argv[1:]
    listens = role == "listen"
    rounds = [pair if listens else pair[::-1] for pair in json.loads(text)]
    line = meet(listens, address)
    line.settimeout(60)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    swap(line, WARM, WARM)
    times = []
    for _ in range(int(repeats)):
        if listens:  # agrees on when to begin
            start = time.monotonic() + 0.5
            line.sendall(f"{start:020.9f}".encode())
        else:
            start = float(line.recv(20, socket.MSG_WAITALL))
        time.sleep(max(0.0, start - time.monotonic()))
        for send, receive in rounds:
            swap(line, send, receive)
        times.append([start, time.monotonic()])
        swap(line, 1, 1)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
