import { expect, test } from "vitest";
import { readNetworks } from "../../../ops/networks.ts";

test("the example of a networks file is one that a process would take", () => {
  const { chains } = readNetworks("ops/networks.example.json");
  expect(chains.map(({ chain, finality }) => [chain, finality])).toEqual([
    ["eip155:8453", "safe"],
    ["solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "finalized"],
  ]);
});
