"""A TCP way to a Unix socket, as a daemon elsewhere would be reached; it can lose what it is told to."""

import socket
import threading


class Relay:
    def __init__(self, path):
        self.path = str(path)
        self.swallow = None  # connections whose first bytes hold this get no answer
        self.swallowed = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self):
        return f"tcp://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        with self.lock:
            self.open |= {client, server}
        try:
            first = client.recv(65536)
            if self.swallow is not None and self.swallow in first:
                self.swallowed += 1
                # The upgrade is answered, then there is silence.
                client.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                               b"Content-Type: application/vnd.docker.raw-stream\r\n\r\n")
                while client.recv(65536):
                    pass
                return
            server.connect(self.path)
            server.sendall(first)
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            self._copy(client, server)
            back.join()
        except OSError:
            pass
        finally:
            self._drop(client, server)

    @staticmethod
    def _copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for one in (source, sink):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _drop(self, *sockets):
        with self.lock:
            self.open -= set(sockets)
        for one in sockets:
            one.close()

    def cut(self):
        """Every connection is lost; new ones work."""
        with self.lock:
            sockets = list(self.open)
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
