import { type Hex, keccak256, numberToHex } from "viem";
import { expect, test } from "vitest";
import { readAccountKinds, readCodeHashes } from "../../../../chains/evm/account-code.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { makeDeps } from "../../../support/test-deps.ts";

/** Returns code whose hash begins with 0xEF. One in 256 has such a hash, and a stranger who wants one tries. */
function findCode(): Hex {
  for (let value = 0; ; value += 1) {
    const code: Hex = `0x63${numberToHex(value, { size: 4 }).slice(2)}00`;
    if (keccak256(code).startsWith("0xef")) return code;
  }
}

test("a wallet whose code hash begins with the byte that no contract may begin with (EIP-3541) is read", async () => {
  const chain = await startChain();
  const { rpc } = (await makeDeps(chain)).evm;
  const wallet = newKey().address;
  const key = newKey().address;
  const code = findCode();
  await chain.client.setCode({ address: wallet, bytecode: code });

  expect((await readCodeHashes(rpc, [wallet, key]))[0]).toBe(keccak256(code));
  expect(await readAccountKinds(rpc, [wallet, key])).toEqual(["contract", "key"]);
});
