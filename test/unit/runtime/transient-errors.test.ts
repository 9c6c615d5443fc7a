import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Redis } from "ioredis";
import { RpcRequestError } from "viem";
import { describe, expect, test } from "vitest";
import { ChainError, isTransientChainError } from "../../../chains/errors.ts";
import { createTransientCheck } from "../../../runtime/transient-errors.ts";

const isTransient = createTransientCheck(isTransientChainError);
const withCode = (code: string) => Object.assign(new Error("an error with a code"), { code });

describe("the error is transient:", () => {
  test.each([
    ["a connection that is refused", withCode("ECONNREFUSED")],
    ["Postgres shutting down", withCode("57P01")],
    ["Postgres out of connections", withCode("53300")],
    ["a connection lost", withCode("08006")],
    ["a deadlock", withCode("40P01")],
    ["a server that a failover has made read-only", withCode("25006")],
    ["a prepared statement that a pooler does not know", withCode("26000")],
    ["a statement that took too long", withCode("57014")],
    ["an error message of pg", new Error("Connection terminated unexpectedly")],
    ["an error message of the connection pool", new Error("timeout exceeded when trying to connect")],
    ["Redis loading its data", new Error("LOADING Redis is loading the dataset in memory")],
    ["a Redis that was demoted", new Error("READONLY You can't write against a read only replica.")],
    ["a Redis that was demoted while a command waited", new Error("UNBLOCKED force unblock from blocking operation")],
    ["a slot of a Redis cluster on another node", new Error("MOVED 866 10.0.0.2:6379")],
    ["a slot that is being moved", new Error("TRYAGAIN Multiple keys request during rehashing of slot")],
    ["a Redis cluster without a master for a slot", new Error("CLUSTERDOWN The cluster is down")],
    ["a Redis cluster that a command went round", new Error("Too many Cluster redirections. Last error: Error")],
    ["sentinels that are down", new Error("All sentinels are unreachable. Retrying from scratch after 50ms.")],
    ["an unreachable RPC endpoint", new ChainError("rpc_unreachable")],
    ["a lagging RPC endpoint", new ChainError("rpc_behind")],
    [
      "an error response of a node",
      new RpcRequestError({ body: {}, error: { code: 1, message: "busy" }, url: "http://n" }),
    ],
    ["an error with a transient cause", new Error("while verifying", { cause: withCode("ECONNRESET") })],
  ])("%s", (_what, error) => {
    expect(isTransient(error)).toBe(true);
  });
});

test("a command that a hung Redis does not answer in time is transient", async () => {
  const sockets: Socket[] = [];
  const hung = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1");
  await once(hung, "listening");
  const { port } = hung.address() as AddressInfo;
  const redis = new Redis(port, { commandTimeout: 20, enableReadyCheck: false });
  redis.on("error", () => undefined);
  const error = await redis.get("key").catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: "Command timed out" });
  expect(isTransient(error)).toBe(true);
  redis.disconnect();
  for (const socket of sockets) socket.destroy();
  hung.close();
});

describe("the error is permanent:", () => {
  test.each<[string, unknown]>([
    ["a bug", new TypeError("x is not a function")],
    ["a unique violation", withCode("23505")],
    ["a foreign key violation", withCode("23503")],
    ["an undefined column", withCode("42703")],
    ["a wrong chain", new ChainError("wrong_chain")],
    ["a wrong contract", new ChainError("wrong_contract")],
    ["a thrown value that is not an error", "Connection terminated"],
    ["nothing", undefined],
  ])("%s", (_what, error) => {
    expect(isTransient(error)).toBe(false);
  });
});
