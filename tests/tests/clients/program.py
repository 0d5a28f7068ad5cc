"""What a program in Python does with etcd, by a client that Baton has no part in (aetcd, from PyPI).

Takes client addresses as HOST:PORT and says "fine" at the end; whatever is not as etcd has it is an AssertionError.
"""

import asyncio
import sys

import aetcd


async def keys(client):
    await client.put(b"py/a", b"1")
    assert (await client.get(b"py/a")).value == b"1"
    await client.put(b"py/b", b"2")
    assert [found.key for found in await client.get_prefix(b"py/")] == [b"py/a", b"py/b"]
    assert await client.delete(b"py/b")
    assert await client.get(b"py/b") is None


async def transaction(client):
    is_one = client.transactions.value(b"py/a") == b"1"
    put = client.transactions.put
    done, _ = await client.transaction([is_one], [put(b"py/a", b"one")], [put(b"py/a", b"other")])
    assert done and (await client.get(b"py/a")).value == b"one"
    done, _ = await client.transaction([is_one], [put(b"py/a", b"again")], [])
    assert not done
    assert await client.replace(b"py/a", b"one", b"two")


async def watch(client):
    told = []
    async def listen():
        async for event in await client.watch_prefix(b"watched/"):
            told.append((event.kind, event.kv.key, event.kv.value))
            if len(told) == 3:
                return
    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.2)
    await client.put(b"watched/a", b"1")
    await client.put(b"watched/a", b"2")
    await client.delete(b"watched/a")
    await asyncio.wait_for(listening, 20)
    assert told == [("PUT", b"watched/a", b"1"), ("PUT", b"watched/a", b"2"), ("DELETE", b"watched/a", b"")], told


async def lease(client):
    lease = await client.lease(60)
    await client.put(b"py/leased", b"1", lease=lease)
    assert 50 <= (await client.get_lease_info(lease.id)).TTL <= 60
    await lease.refresh()
    await lease.revoke()
    assert await client.get(b"py/leased") is None


async def one_writes_and_the_others_read(clients):
    for number, writer in enumerate(clients):
        await writer.put(b"py/shared", b"%d" % number)
        for reader in clients:
            assert (await reader.get(b"py/shared")).value == b"%d" % number


async def main(addresses):
    clients = [aetcd.Client(*address.split(":")) for address in addresses]
    for client in clients:
        for part in (keys, transaction, watch, lease):
            await part(client)
    await one_writes_and_the_others_read(clients)
    assert (await clients[0].status()).version
    for client in clients:
        await client.close()
    print("fine")


asyncio.run(main(sys.argv[1:]))
