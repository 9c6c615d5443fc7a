import { expect, test } from "vitest";
import { catalog } from "../../../queues/catalog.ts";
import { createChainShares } from "../../../workers/chain-shares.ts";

const queue = "verify-signature";

test("jobs of one chain hold a part of a queue's slots, and jobs of other chains and queues run beside them", async () => {
  const run = createChainShares(["eip155:1", "eip155:2"]);
  const { promise: hanging, resolve: end } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const start = (of: Parameters<typeof run>[0]) =>
    run(of, () => {
      begun.push(`${of.queue} ${of.chain}`);
      return hanging;
    });
  const jobs = Array.from({ length: 16 }, () => start({ queue, chain: "eip155:1" }));
  await start({ queue, chain: "eip155:1" });
  expect(begun).toHaveLength(16);
  const others = [start({ queue, chain: "eip155:2" }), start({ queue: "verify-contract-wallet", chain: "eip155:1" })];
  expect(begun.slice(16)).toEqual([`${queue} eip155:2`, "verify-contract-wallet eip155:1"]);
  end();
  await Promise.all([...jobs, ...others]);
});

test("a job that fails frees its slot", async () => {
  const run = createChainShares(["eip155:1", "eip155:2"]);
  const fail = () => run({ queue, chain: "eip155:1" }, async () => Promise.reject(new Error("no endpoint")));
  for (let job = 0; job < 40; job += 1) await expect(fail()).rejects.toThrow("no endpoint");
});

test.each([4, 8, 63])("while %i chains hang, another chain has a slot", async (hanging) => {
  const { concurrency } = catalog[queue];
  const chains = Array.from({ length: hanging + 1 }, (_one, index) => `eip155:${index}`);
  const run = createChainShares(chains);
  const { promise, resolve: end } = Promise.withResolvers<void>();
  let taken = 0;
  const jobs = chains.slice(1).flatMap((chain) =>
    Array.from({ length: concurrency }, () =>
      run({ queue, chain }, () => {
        taken += 1;
        return promise;
      }),
    ),
  );
  expect(taken).toBe(concurrency - 1);
  let ran = 0;
  await run({ queue, chain: "eip155:0" }, async () => void ran++);
  expect(ran).toBe(1);
  end();
  await Promise.all(jobs);
});

test("each chain has a slot although there are more chains than slots", async () => {
  const chains = Array.from({ length: 100 }, (_one, index) => `eip155:${index}`);
  const run = createChainShares(chains);
  let ran = 0;
  for (const chain of chains) await run({ queue, chain }, async () => void ran++);
  expect(ran).toBe(100);
});
