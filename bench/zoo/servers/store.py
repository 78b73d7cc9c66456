"""A downstream dependency of a server: responds to each received line with one line. The settings
in $ZOO (JSON) are:

- `answer_us`: the service time of a request, in microseconds
- `one`: whether the store serves only one request at a time, over all connections

The store prints its address.
"""

import asyncio
import json
import os

SET = json.loads(os.environ.get("ZOO", "{}"))


async def main():
    turn = asyncio.Lock()

    async def client(reader, writer):
        try:
            while await reader.readline():
                if SET.get("one"):
                    async with turn:
                        await asyncio.sleep(SET["answer_us"] / 1e6)
                else:
                    await asyncio.sleep(SET["answer_us"] / 1e6)
                writer.write(b"+OK\r\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0, backlog=1024)
    print("%s:%d" % server.sockets[0].getsockname(), flush=True)
    await server.serve_forever()


asyncio.run(main())
