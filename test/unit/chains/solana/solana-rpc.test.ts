import { expect, test } from "vitest";
import { listSignatures } from "../../../../chains/solana/transaction-history.ts";
import { answerEach, openCluster } from "./test-endpoints.ts";

test("an endpoint that has not reached the slot of a request is passed over, in favour of one that has", async () => {
  const error = { code: -32_016, message: "Minimum context slot has not been reached" };
  const listed = [{ signature: "a", slot: 7, err: null, memo: null }];
  const { chain } = await openCluster(
    { answer: answerEach(() => ({ error })) },
    { answer: answerEach(() => ({ result: listed })) },
  );
  expect(await listSignatures(chain, { account: "treasury", atSlot: 7 })).toEqual([
    { signature: "a", slot: 7, failed: false, memo: "" },
  ]);
});
