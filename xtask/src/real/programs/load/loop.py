"""A server on asyncio whose handler renders: meanwhile its loop does nothing else."""
import asyncio
import sys


def render(rounds):
    rows = [f"<td>{n * n % 997}</td>" for n in range(rounds)]
    return "".join(sorted(rows)).encode()


async def handle(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            body = render(6000)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port):
    server = await asyncio.start_server(handle, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
