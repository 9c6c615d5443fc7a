import { createServer } from "node:http";
import { afterEach, expect, test } from "vitest";
import { callSolana, openTestControls } from "../../../../local/solana-process.ts";
import { startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { openSigner } from "./sign-test-transfers.ts";

const solana = await startTestSolana({ own: true });
const { connection, send, signTransfer, statusOf } = await openSigner(solana);

afterEach(async () => {
  const { knobs } = solana;
  await knobs.drop(0);
  await knobs.hold(0);
  await knobs.delay(["getSlot"], 0);
  await knobs.resume();
});

test("a dropped transaction has a signature and no other effect", async () => {
  await solana.knobs.drop(1);
  const [lost, kept] = [await signTransfer(), await signTransfer()];
  const signature = await send(lost.bytes);
  expect((await statusOf(await send(kept.bytes)))?.err).toBeNull();
  expect(await statusOf(signature)).toBeUndefined();
  expect(await send(lost.bytes)).toBe(signature);
  expect((await statusOf(signature))?.err).toBeNull();
  await solana.knobs.drop("all");
  for (const { bytes } of [await signTransfer(), await signTransfer()])
    expect(await statusOf(await send(bytes))).toBeUndefined();
});

test("a held transaction lands the given number of slots later", async () => {
  await solana.knobs.pause();
  await solana.knobs.hold(3);
  const signature = await send((await signTransfer()).bytes);
  await solana.knobs.jump(2);
  expect(await statusOf(signature)).toBeUndefined();
  await solana.knobs.jump(1);
  expect(await statusOf(signature)).toMatchObject({ slot: await connection.getSlot("processed"), err: null });
});

test("a rollback removes what was not final, and later slots have new numbers", async () => {
  await solana.knobs.pause();
  const stays = await signTransfer();
  const kept = await send(stays.bytes);
  await solana.knobs.jump(4);
  const { bytes, to } = await signTransfer();
  const { blockhash } = await connection.getLatestBlockhash("processed");
  const signature = await send(bytes);
  await solana.knobs.jump(2);
  const slot = await connection.getSlot("processed");
  const height = await connection.getBlockHeight("processed");

  expect(await solana.knobs.rollback(3)).toEqual([signature]);

  expect(await statusOf(signature)).toBeUndefined();
  expect(await connection.getTransaction(signature)).toBeNull();
  expect(await connection.getBalance(to, "processed")).toBe(0);
  expect(await connection.getSignaturesForAddress(to)).toEqual([]);
  expect(await statusOf(kept)).toMatchObject({ err: null });
  expect(await connection.getBalance(stays.to, "processed")).toBe(1_000_000);
  expect(await connection.getSlot("processed")).toBe(slot + 1);
  expect(await connection.getBlockHeight("processed")).toBe(height - 2);
  expect((await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(false);
  await solana.knobs.jump(5);
  expect(await solana.knobs.rollback(4)).toEqual([]);
  expect(await statusOf(kept)).toMatchObject({ confirmationStatus: "finalized" });
});

test("a final transaction stays final, however often the slots above it are rolled back", async () => {
  await solana.knobs.pause();
  await solana.knobs.jump(4);
  const { bytes, to } = await signTransfer();
  const signature = await send(bytes);
  await solana.knobs.jump(4);
  expect(await statusOf(signature)).toMatchObject({ confirmationStatus: "finalized" });
  for (let times = 0; times < 3; times += 1) expect(await solana.knobs.rollback(3)).toEqual([]);
  expect(await statusOf(signature)).toMatchObject({ confirmationStatus: "finalized" });
  expect(await connection.getBalance(to, "finalized")).toBe(1_000_000);
});

test("a transaction that was rolled back can land again", async () => {
  await solana.knobs.pause();
  await solana.knobs.jump(4);
  const { bytes, to } = await signTransfer();
  await solana.knobs.jump(2);
  const signature = await send(bytes);
  await solana.knobs.rollback(1);
  expect(await send(bytes)).toBe(signature);
  expect(await connection.getBalance(to, "processed")).toBe(1_000_000);
});

test("the named methods fail a given number of times, hang, or respond late", async () => {
  const { knobs, url } = solana;
  await knobs.fail(["getSlot"], 2, "error");
  for (const _ of [1, 2]) await expect(callSolana(url, "getSlot")).rejects.toMatchObject({ code: -32005 });
  expect(await callSolana(url, "getSlot")).toBeGreaterThan(0);
  expect(await callSolana(url, "getBlockHeight")).toBeGreaterThan(0);

  await knobs.fail(["getBlockHeight"], 1, "hang");
  let hasResponded = false;
  void callSolana(url, "getBlockHeight").then(
    () => (hasResponded = true),
    () => undefined,
  );
  await knobs.delay(["getSlot"], 200);
  const started = performance.now();
  await callSolana(url, "getSlot");
  expect(performance.now() - started).toBeGreaterThan(190);
  expect(hasResponded).toBe(false);
});

test("slots can be paused and resumed, at any speed", async () => {
  const { knobs } = solana;
  await knobs.pause();
  const slot = await connection.getSlot("processed");
  await knobs.setSlotMs(2);
  expect(await connection.getSlot("processed")).toBe(slot);
  await knobs.resume();
  await waitFor(async () => (await connection.getSlot("processed")) > slot + 50, { within: 20_000 });
  await knobs.setSlotMs(20);
});

test("a test control explains itself on a server that does not have it", async () => {
  const otherServer = createServer((_, response) =>
    response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32601, message: "Method not found" } })),
  );
  await new Promise<void>((resolve) => otherServer.listen(0, "127.0.0.1", resolve));
  const address = otherServer.address();
  const port = typeof address === "object" ? address?.port : undefined;
  await expect(openTestControls(`http://127.0.0.1:${port}`).pause()).rejects.toThrow(/unset SOLANA_RPC_URL/);
  otherServer.close();
});
