import fc from "fast-check";
import { encodeFunctionData, type Hex } from "viem";
import { expect, test } from "vitest";
import { multicallAbi, tokenAbi } from "../../../../chains/evm/abi.ts";
import { encodeAuthorizationState, encodeBalanceOf } from "../../../../chains/evm/eip3009.ts";
import { encodeMulticall } from "../../../../chains/evm/multicall.ts";

const hexOf = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString("hex")}`;
const bytes = (limits: { minLength: number; maxLength: number }) => fc.uint8Array(limits).map(hexOf);
const address = bytes({ minLength: 20, maxLength: 20 });
const word = bytes({ minLength: 32, maxLength: 32 });

test("the call data of any calls is what viem encodes", () => {
  const call = fc.record({ target: address, data: bytes({ minLength: 0, maxLength: 200 }) });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 20 }), (calls) => {
      const args = [false, calls.map(({ target, data }) => ({ target, callData: data }))] as const;
      expect(encodeMulticall(calls)).toBe(
        encodeFunctionData({ abi: multicallAbi, functionName: "tryAggregate", args }),
      );
    }),
  );
});

test("the calls that read a balance and the use of an authorization are what viem encodes", () => {
  fc.assert(
    fc.property(address, word, (account, nonce) => {
      const balance = { abi: tokenAbi, functionName: "balanceOf", args: [account] } as const;
      expect(encodeBalanceOf(account)).toBe(encodeFunctionData(balance));
      const state = { abi: tokenAbi, functionName: "authorizationState", args: [account, nonce] } as const;
      expect(encodeAuthorizationState(account, nonce)).toBe(encodeFunctionData(state));
    }),
  );
});
