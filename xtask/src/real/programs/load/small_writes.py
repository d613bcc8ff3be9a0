# A client sends a request of head and body in two writes and waits for the reply, for SECONDS; with a second argument
# TCP_NODELAY is set. Prints the round trips.
import socket
import sys
import threading
import time

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()


def serve():
    connection, _ = listener.accept()
    while True:
        request = b""
        while len(request) < 1100:
            part = connection.recv(4096)
            if not part:
                return
            request += part
        connection.sendall(b"done")


threading.Thread(target=serve, daemon=True).start()
client = socket.create_connection(listener.getsockname())
if len(sys.argv) > 2:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
end, trips = time.time() + float(sys.argv[1]), 0
while time.time() < end:
    client.sendall(b"h" * 100)
    client.sendall(b"b" * 1000)
    client.recv(10)
    trips += 1
print("round trips", trips)
