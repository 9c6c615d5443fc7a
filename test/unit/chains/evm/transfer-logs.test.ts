import fc from "fast-check";
import { encodeAbiParameters, type Hex, maxUint256, numberToHex, pad, type RpcLog } from "viem";
import { expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { COLLECTED_TOPIC } from "../../../../chains/evm/collector-contract.ts";
import { readTransferLogs as pair } from "../../../../chains/evm/transfer-logs.ts";

const token: Hex = `0x${"70".repeat(20)}`;
const otherToken: Hex = `0x${"71".repeat(20)}`;
const payer: Hex = `0x${"aa".repeat(20)}`;
const stranger: Hex = `0x${"ab".repeat(20)}`;
const receiver: Hex = `0x${"bb".repeat(20)}`;
const nonce: Hex = `0x${"0c".repeat(32)}`;
const txHash: Hex = `0x${"d1".repeat(32)}`;

function log(index: number, topics: Hex[], more: Partial<RpcLog> = {}): RpcLog {
  return {
    address: token,
    topics,
    data: "0x",
    blockHash: `0x${"b1".repeat(32)}`,
    blockNumber: "0x10",
    blockTimestamp: "0x0",
    transactionHash: txHash,
    transactionIndex: "0x0",
    logIndex: numberToHex(index),
    removed: false,
    ...more,
  } as RpcLog;
}
const amountData = (amount: bigint) => encodeAbiParameters([{ type: "uint256" }], [amount]);
const used = (index: number, more: Partial<RpcLog> = {}, by = payer) =>
  log(index, [AUTHORIZATION_USED_TOPIC, pad(by), nonce], more);
const moved = (index: number, more: Partial<RpcLog> = {}, from = payer) =>
  log(index, [TRANSFER_TOPIC, pad(from), pad(receiver)], { data: amountData(5n), ...more });

const second: Hex = `0x${"0d".repeat(32)}`;

const disburser: Hex = `0x${"d1".repeat(20)}`;
const treasury: Hex = `0x${"7e".repeat(20)}`;
const collector: Hex = `0x${"c0".repeat(20)}`;
const readTransferLogs = (logs: readonly RpcLog[]) => pair(logs, { collector, disburser, treasury });

test("a Transfer directly after its AuthorizationUsed log is read with the authorization's nonce", () => {
  expect(readTransferLogs([used(3), moved(4)])).toEqual([
    {
      blockId: `0x${"b1".repeat(32)}`,
      blockNumber: 16,
      txHash,
      logIndex: 4,
      token,
      payer,
      receiver,
      amount: 5n,
      authorizationNonce: nonce,
    },
  ]);
});

test("each movement of a batch gets its own nonce, in whatever order the node lists the logs", () => {
  const logs = [moved(6, {}, stranger), used(3), log(5, [AUTHORIZATION_USED_TOPIC, pad(stranger), second]), moved(4)];
  expect(readTransferLogs(logs).map((seen) => [seen.logIndex, seen.authorizationNonce])).toEqual([
    [6, second],
    [4, nonce],
  ]);
});

test.each<[string, RpcLog[]]>([
  ["without an authorization", [moved(4)]],
  ["beside an authorization of another token", [used(3, { address: otherToken }), moved(4)]],
  ["beside an authorization of another payer", [used(3, {}, stranger), moved(4)]],
  ["after an authorization in another transaction", [used(3, { transactionHash: `0x${"d2".repeat(32)}` }), moved(4)]],
  ["after another Transfer", [moved(3), moved(4)]],
])("a Transfer %s is read without a nonce", (_how, logs) => {
  const seen = readTransferLogs(logs);
  expect(seen.length).toBeGreaterThan(0);
  for (const movement of seen) expect(movement.authorizationNonce).toBeNull();
});

test.each<[string, RpcLog[]]>([
  ["with another log in between", [used(2), moved(4)]],
  ["before the authorization", [moved(3), used(4)]],
  ["before the authorization, with another log in between", [moved(2), used(4)]],
  ["with a transfer of zero in between", [used(2), moved(3, { data: amountData(0n) }), moved(4)]],
])("a payer's only Transfer %s gets the nonce of their only authorization", (_how, logs) => {
  expect(readTransferLogs(logs).map((seen) => seen.authorizationNonce)).toEqual([nonce]);
});

const usedSecond = (index: number) => log(index, [AUTHORIZATION_USED_TOPIC, pad(payer), second]);
test.each<[string, RpcLog[]]>([
  ["before the transfer", [used(1), moved(2), usedSecond(3), moved(4)]],
  ["after the transfer", [moved(1), used(2), moved(3), usedSecond(4)]],
  ["before the transfer, with another log in between", [used(1), moved(3), usedSecond(4), moved(6)]],
])(
  "two transfers of one payer in one transaction get a nonce each if the token logs authorizations %s",
  (_how, logs) => {
    const seen = readTransferLogs(logs).toSorted((a, b) => a.logIndex - b.logIndex);
    expect(seen.map((one) => one.authorizationNonce)).toEqual([nonce, second]);
  },
);

test.each<[string, RpcLog]>([
  ["an ERC-721 transfer, which has four topics", log(4, [TRANSFER_TOPIC, pad(payer), pad(receiver), pad("0x01")])],
  ["a transfer without an amount", moved(4, { data: "0x" })],
  ["a transfer with more than an amount", moved(4, { data: `${amountData(1n)}${"00".repeat(32)}` as Hex })],
  ["a transfer of zero, which any account can make in another's name", moved(4, { data: amountData(0n) })],
  ["a removed log", moved(4, { removed: true })],
  ["a pending log", moved(4, { blockHash: null as never, blockNumber: null as never })],
  ["another event", log(4, [`0x${"ee".repeat(32)}`, pad(payer), pad(receiver)], { data: amountData(1n) })],
])("%s is not a movement", (_what, one) => {
  expect(readTransferLogs([used(3), one])).toEqual([]);
});

test("addresses are read in lower case, whatever case a node uses for the token", () => {
  const upperCase = { address: token.toUpperCase().replace("0X", "0x") as Hex };
  const mixed: Hex = `0x${"Ab".repeat(20)}`;
  const [seen] = readTransferLogs([used(3, { address: mixed }), moved(4, { address: mixed })]);
  expect(seen).toMatchObject({ token: mixed.toLowerCase(), authorizationNonce: nonce });
  expect(readTransferLogs([moved(4, upperCase)])[0]?.token).toBe(token);
});

test("a removed authorization log sets no nonce", () => {
  expect(readTransferLogs([used(3, { removed: true }), moved(4)])[0]?.authorizationNonce).toBeNull();
});

test("a log that an endpoint lists twice is read as one movement", () => {
  expect(readTransferLogs([used(3), moved(4), used(3), moved(4)])).toHaveLength(1);
});

const collected = (index: number, topics: Hex[], data: Hex) =>
  log(index, [COLLECTED_TOPIC, ...topics], { address: collector, data });

test("a movement that a Collected log names is not an authorization's", () => {
  const mark = collected(6, [pad(token), pad(payer), second], amountData(5n));
  const seen = readTransferLogs([moved(3), used(4), moved(5), mark]);
  expect(seen.map((one) => one.authorizationNonce)).toEqual([nonce, second]);
});

test("a Collected log sets the nonce of the nearest matching movement before it", () => {
  const mark = collected(6, [pad(token), pad(payer), nonce], amountData(5n));
  expect(readTransferLogs([moved(3), moved(4), mark]).map((seen) => seen.authorizationNonce)).toEqual([null, nonce]);
});

test.each<[string, RpcLog]>([
  ["of another token", collected(6, [pad(otherToken), pad(payer), nonce], amountData(5n))],
  ["of another payer", collected(6, [pad(token), pad(stranger), nonce], amountData(5n))],
  ["of another amount", collected(6, [pad(token), pad(payer), nonce], amountData(6n))],
  ["before the movement", collected(3, [pad(token), pad(payer), nonce], amountData(5n))],
  ["with too few topics", collected(6, [pad(token), pad(payer)], amountData(5n))],
  ["without data", collected(6, [pad(token), pad(payer), nonce], "0x")],
  ["with more data", collected(6, [pad(token), pad(payer), nonce], `${amountData(5n)}${"00".repeat(32)}` as Hex)],
  ["of another contract", { ...collected(6, [pad(token), pad(payer), nonce], amountData(5n)), address: stranger }],
])("a Collected log %s sets no nonce", (_how, mark) => {
  expect(readTransferLogs([moved(4), mark]).map((seen) => seen.authorizationNonce)).toEqual([null]);
});

const word = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
const topic = fc.oneof(
  fc.constantFrom<Hex>(
    TRANSFER_TOPIC,
    AUTHORIZATION_USED_TOPIC,
    COLLECTED_TOPIC,
    pad(payer),
    pad(receiver),
    pad(token),
  ),
  word,
);
const anyLog = fc.record({
  address: fc.constantFrom(token, otherToken, collector, stranger),
  topics: fc.array(topic, { maxLength: 4 }),
  data: fc.oneof(
    fc.constantFrom<Hex>("0x", amountData(0n), amountData(maxUint256)),
    fc.uint8Array({ maxLength: 100 }).map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`),
  ),
  blockHash: fc.constantFrom<Hex | null>(`0x${"b1".repeat(32)}`, `0x${"b2".repeat(32)}`, null),
  blockNumber: fc.constantFrom<Hex | null>("0x10", null),
  transactionHash: fc.constantFrom<Hex | null>(txHash, `0x${"d2".repeat(32)}`, null),
  logIndex: fc.option(fc.nat({ max: 8 }).map((index) => numberToHex(index))),
  removed: fc.boolean(),
});

test("no log that a contract can emit, in any order, makes the reader throw or return an invalid movement", () => {
  const property = fc.property(fc.array(anyLog, { maxLength: 12 }), (logs) => {
    const seen = readTransferLogs(logs as unknown as RpcLog[]);
    const places = seen.map(({ blockId, logIndex }) => `${blockId} ${logIndex}`);
    expect(new Set(places).size).toBe(places.length);
    for (const { amount, payer, receiver } of seen) {
      expect(amount > 0n && amount <= maxUint256).toBe(true);
      expect(`${payer} ${receiver}`).toMatch(/^0x[0-9a-f]{40} 0x[0-9a-f]{40}$/);
    }
  });
  fc.assert(property, { numRuns: 2_000 });
});
