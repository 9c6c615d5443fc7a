import { expect, test } from "vitest";
import { readNetworks } from "../../../../runtime/networks/read-networks.ts";

test("the example networks file is valid", () => {
  const { chains } = readNetworks("runtime/networks/networks.example.json");
  expect(chains.map(({ chain, finality }) => [chain, finality])).toEqual([
    ["eip155:8453", "safe"],
    ["solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "finalized"],
  ]);
});
