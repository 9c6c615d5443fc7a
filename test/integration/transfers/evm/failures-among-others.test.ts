import {
  concat,
  decodeAbiParameters,
  encodeAbiParameters,
  type Hex,
  numberToHex,
  pad,
  parseAbiParameters,
  size,
} from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { deployTestContract } from "../../../support/test-contracts.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
const proxy = await startAlteringProxy({ target: chain.url });
const inspection = parseAbiParameters("uint256[] sizes, bool isDone, bytes answer");
const outcomesAbi = parseAbiParameters("(bool ok, bytes data)[]");

/** Unpacks what the Inspector returns: each word after the number of its significant bytes. */
function unpack(packed: Hex): Hex {
  const words: Hex[] = [];
  for (let at = 2; at < packed.length; ) {
    const end = at + 2 + Number.parseInt(packed.slice(at, at + 2), 16) * 2;
    words.push(pad(`0x${packed.slice(at + 2, end)}`, { size: 32 }));
    at = end;
  }
  return concat(words);
}

function pack(data: Hex): Hex {
  const words = data.slice(2).match(/.{64}/g) ?? [];
  const significant = words.map((word) => `0x${word.replace(/^(00)+/, "")}` as Hex);
  return concat(significant.flatMap((word) => [numberToHex(size(word), { size: 1 }), word]));
}

/** Makes every call fail in the eth_call that also reads the accounts' code, and returns how often that happened. */
function failCallsAmongOthers(): { times: number } {
  const failed = { times: 0 };
  proxy.alter((method, [call], result) => {
    if (method !== "eth_call" || (call as { to?: Hex }).to !== undefined) return result;
    const [sizes, isDone, answer] = decodeAbiParameters(inspection, unpack(result as Hex));
    const [outcomes] = decodeAbiParameters(outcomesAbi, answer);
    const none = encodeAbiParameters(outcomesAbi, [outcomes.map(() => ({ ok: false, data: "0x" as const }))]);
    failed.times += 1;
    return pack(encodeAbiParameters(inspection, [sizes, isDone, none]));
  });
  return failed;
}

test("transfers that fail only among others are simulated alone, and share their transaction", async () => {
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const ids = (await fixture.signAll(await fundBuyers(chain, 2))).map(({ id }) => id);
  const failed = failCallsAmongOthers();
  await fixture.relay();
  await fixture.watch();
  expect([failed.times, await fixture.transactions()]).toMatchObject([1, [{ state: "final" }]]);
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed"]);
});

test("of the transfers of one account that fail only among others, one is sent and the other one later", async () => {
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const [buyer] = await fundBuyers(chain, 1);
  if (!buyer) throw new Error("there is no buyer");
  const ids = [(await fixture.sign(buyer)).id, (await fixture.sign(buyer)).id];
  failCallsAmongOthers();
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.rowsOf(ids)).toMatchObject([
    { state: "confirmed", alone: false },
    { state: "ready", alone: true },
  ]);
  fixture.clock.advance(3_000);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed"]);
});

test("an oracle whose answers fail only among transfers is asked without them, and the payments succeed", async () => {
  const oracle = await deployTestContract(chain.client, "Oracle", "Oracle");
  const change = { screening: { oracle } };
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url], change });
  const buyers = await fundBuyers(chain, 2);
  const payments = await Promise.all(buyers.map(() => fixture.create()));
  const attempts = await Promise.all(buyers.map((buyer, index) => fixture.attempt(payments[index] ?? "", buyer)));
  const failed = failCallsAmongOthers();
  await fixture.verify(...attempts);
  const verified = failed.times;
  await fixture.relay();
  await fixture.watch();
  expect([verified > 0, failed.times > verified]).toEqual([true, true]);
  for (const id of payments) expect((await fixture.status(id)).state).toBe("succeeded");
});
