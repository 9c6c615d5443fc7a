import fc from "fast-check";
import { encodeFunctionData, encodeFunctionResult, type Hex } from "viem";
import { expect, test } from "vitest";
import { multicallAbi, tokenAbi } from "../../../../chains/evm/abi.ts";
import { encodeAuthorizationState, encodeBalanceOf } from "../../../../chains/evm/eip3009.ts";
import { decodeMulticall, encodeMulticall } from "../../../../chains/evm/multicall.ts";

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

test("the results of any calls are read as viem encodes them, and an answer that is cut off is refused", () => {
  const outcome = fc.record({ success: fc.constant(true), returnData: bytes({ minLength: 0, maxLength: 200 }) });
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 20 }), fc.nat(), (results, cut) => {
      const answer = encodeFunctionResult({ abi: multicallAbi, functionName: "tryAggregate", result: results });
      expect(decodeMulticall(answer)).toEqual(results.map(({ returnData }) => ({ ok: true, data: returnData })));
      // The last word is padding, unless it is the end of the list.
      const short = answer.slice(0, Math.min(cut, answer.length - 64)) as Hex;
      if (results.length > 0) expect(() => decodeMulticall(short)).toThrow(RangeError);
    }),
  );
  const failed = [{ success: false, returnData: "0x" as Hex }];
  const refused = encodeFunctionResult({ abi: multicallAbi, functionName: "tryAggregate", result: failed });
  expect(decodeMulticall(refused)).toEqual([{ ok: false, reason: "reverted without a reason" }]);
});

test("an answer that names results without end is refused at once", () => {
  const endless = `0x${[32n, 2n ** 255n, 2n ** 255n].map((number) => number.toString(16).padStart(64, "0")).join("")}`;
  expect(() => decodeMulticall(endless as Hex)).toThrow(RangeError);
});

test("an answer whose results share their bytes is refused, because it could take minutes to decode", () => {
  const word = (number: number) => number.toString(16).padStart(64, "0");
  const result = word(0) + word(0x40) + word(0x40) + "ab".repeat(0x40);
  const shared = `0x${word(32)}${word(20)}${word(20 * 32).repeat(20)}${result}` as Hex;
  expect(() => decodeMulticall(shared)).toThrow("overlap");
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
