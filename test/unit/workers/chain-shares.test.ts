import { expect, test } from "vitest";
import { createChainShares } from "../../../workers/chain-shares.ts";

const queue = "verify-signature";

test("jobs of one chain hold a part of a queue's slots, and jobs of other chains and queues run beside them", async () => {
  const run = createChainShares();
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
  const run = createChainShares();
  const fail = () => run({ queue, chain: "eip155:1" }, async () => Promise.reject(new Error("no endpoint")));
  for (let job = 0; job < 40; job += 1) await expect(fail()).rejects.toThrow("no endpoint");
});
