"""A relay between the clients and a server: forwards each connection in both directions, and reads
the responses slowly. The settings in $ZOO (JSON) are:

- `to`: the address of the server
- `bytes_per_s`: the rate at which the relay reads responses, for all connections together
- `buffer`: the size of the receive buffer of each connection to the server, in bytes

The relay prints its address.
"""

import json
import os
import socket
import threading
import time

SET = json.loads(os.environ["ZOO"])
PIECE = 16_384
TURN, free_at = threading.Lock(), [0.0]


def take():
    with TURN:
        now = time.monotonic()
        free_at[0] = max(free_at[0], now) + PIECE / SET["bytes_per_s"]
        wait = free_at[0] - now
    time.sleep(max(wait, 0))


def pass_on(source, target, paced):
    try:
        while True:
            if paced:
                take()
            data = source.recv(PIECE)
            if not data:
                break
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main():
    host, port = SET["to"].rsplit(":", 1)
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen(1024)
    print("%s:%d" % door.getsockname(), flush=True)
    while True:
        client, _ = door.accept()
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SET["buffer"])
        server.connect((host, int(port)))
        threading.Thread(target=pass_on, args=(client, server, False), daemon=True).start()
        threading.Thread(target=pass_on, args=(server, client, True), daemon=True).start()


main()
