import { expect, test } from "vitest";
import type { Rpc } from "../../../../chains/evm/evm-rpc.ts";
import { finalReadingsOf } from "../../../../chains/evm/final-readings.ts";
import type { EvmChain } from "../../../../chains/evm/open-evm-chain.ts";

type Kept = Parameters<ReturnType<typeof finalReadingsOf>["keep"]>[2];

test("the oldest transactions are dropped when an endpoint has shown more than 10,000 movements", () => {
  const readings = finalReadingsOf((() => undefined) as unknown as Rpc);
  const chain = { treasury: "0x01" } as unknown as EvmChain;
  const made = (movements: number) =>
    ({ state: "final", movements: Array.from({ length: movements }, () => ({})) }) as unknown as Kept;
  const listKept = (...hashes: string[]) => hashes.filter((hash) => readings.find(chain, hash));
  readings.keep(chain, "first", made(4_000));
  readings.keep(chain, "second", made(4_001));
  for (const _time of [1, 2, 3]) readings.keep(chain, "third", made(1_001));
  expect(listKept("first", "second", "third"), "one that is read again counts once").toEqual([
    "first",
    "second",
    "third",
  ]);
  readings.keep(chain, "fourth", made(1_000));
  expect(listKept("first", "second", "third", "fourth")).toEqual(["second", "third", "fourth"]);
  readings.keep(chain, "huge", made(20_001));
  expect(listKept("second", "third", "fourth", "huge")).toEqual([]);
});
