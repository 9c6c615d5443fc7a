import { expect, test } from "vitest";
import type { EvmChain } from "../../../../chains/evm/open-evm-chain.ts";
import { singleTransferGas } from "../../../../transfers/evm/lane-signers.ts";

const assets = [{ transferGas: 130_000 }, { transferGas: 150_000 }];
const withLanes = (...addresses: string[]) =>
  ({
    network: { walletGas: 1_000_000, assets, lanes: addresses.map((address) => ({ address })) },
  }) as never as EvmChain;

test("the lane for contract wallets needs gas for a contract wallet, and another one for the largest transfer", () => {
  const chain = withLanes("0xAA", "0xBB");
  expect(singleTransferGas(chain, "0xaa")).toBe(210_000n);
  expect(singleTransferGas(chain, "0xbb")).toBe(1_060_000n);
});

test("a single lane needs gas for the transfers that it sends most", () => {
  expect(singleTransferGas(withLanes("0xAA"), "0xaa")).toBe(210_000n);
});
