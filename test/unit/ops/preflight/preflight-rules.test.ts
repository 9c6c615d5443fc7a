import { expect, test } from "vitest";
import { describeSkew } from "../../../../ops/preflight/clock.ts";
import { compareFinalBlocks, compareHeads } from "../../../../ops/preflight/endpoints.ts";
import { type Finding, worstStatus } from "../../../../ops/preflight/finding.ts";
import { describeLatency } from "../../../../ops/preflight/latency.ts";
import { toJson, toTable } from "../../../../ops/preflight/print-findings.ts";

const ethereum = { blockMs: 12_000, unit: "block" } as const;
const arbitrum = { blockMs: 250, unit: "block" } as const;
const heads = (...numbers: number[]) => numbers.map((number) => ({ number, at: undefined }));

test.each([
  ["one block apart on Ethereum", ethereum, 1, "ok"],
  ["five blocks apart on Ethereum", ethereum, 5, "warning"],
  ["11 blocks apart on Ethereum", ethereum, 11, "error"],
  ["11 blocks (3 s) apart on Arbitrum", arbitrum, 11, "ok"],
  ["40 blocks (10 s) apart on Arbitrum", arbitrum, 40, "warning"],
  ["200 blocks (50 s) apart on Arbitrum", arbitrum, 200, "error"],
] as const)("of two endpoints %s, the later one's status follows blocks and time", (_what, chain, behind, status) => {
  const outcomes = compareHeads(chain, heads(1_000, 1_000 - behind)).flat();
  expect(outcomes.map((one) => one.status)).toEqual(["ok", status]);
});

test("a single endpoint has no head to compare with", () => {
  expect(compareHeads(ethereum, heads(1_000))).toEqual([[]]);
  expect(compareHeads(ethereum, [...heads(1_000), { error: new Error("down") }])).toEqual([[], []]);
});

test("endpoints that all lack the final block, or of which one has another block, do not agree", async () => {
  const endpoint = { call: async () => undefined };
  const compare = async (hashes: (string | undefined)[]) => {
    const readFinalHashes = async () => ({ number: 7, hashes });
    const outcomes = await compareFinalBlocks({ readFinalHashes }, [endpoint, endpoint]);
    return outcomes.flat().map(({ status }) => status);
  };
  expect(await compare(["0xa", "0xa"])).toEqual(["ok", "ok"]);
  expect(await compare(["0xa", "0xb"])).toEqual(["ok", "error"]);
  expect(await compare([undefined, "0xb"])).toEqual(["error", "ok"]);
  expect(await compare([undefined, undefined])).toEqual(["error", "error"]);
});

test("latency is the median and the 95th percentile by nearest rank, and slow or failed calls are reported", () => {
  const times = Array.from({ length: 20 }, (_, index) => (index + 1) * 10);
  expect(describeLatency(times, [])).toMatchObject({ status: "ok", detail: "p50 100 ms, p95 190 ms of 20 calls" });
  expect(describeLatency([...times.slice(2), 600, 700], [])).toMatchObject({ status: "warning" });
  expect(describeLatency(times.slice(0, 19), [new Error("HTTP 429")])).toMatchObject({
    status: "warning",
    detail: expect.stringContaining("1 of 20 calls failed: Error: HTTP 429"),
  });
  expect(describeLatency([], [new Error("HTTP 429")])).toMatchObject({ status: "error" });
});

test.each([
  [[700, -300, 1_200], "ok"],
  [[5_200, 5_400, -90_000], "warning"],
  [[-31_000], "error"],
  [[], "warning"],
])("the median of %j ms decides whether the machine's clock is right: %s", (skews, status) => {
  expect(describeSkew(skews)).toMatchObject({ status });
});

const findings: Finding[] = [
  { chain: "all", check: "clock", status: "ok", detail: "0.1 s ahead of 1 endpoint's web server" },
  {
    chain: "eip155:1",
    endpoint: "a-provider-with-a-name-that-is-much-too-long-for-a-column",
    check: "log range",
    status: "warning",
    detail: `refused: ${"many words that do not fit into one line ".repeat(6)}${"0".repeat(150)}`,
    remedy: "Use a plan with larger log ranges: catching up takes more calls.",
  },
];

test("the table keeps within 120 columns, with each remedy below its row, and sums up what it found", () => {
  const lines = toTable(findings);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
  expect(lines.join("\n").replaceAll(/\s+/g, " ")).toContain("-> Use a plan with larger log ranges");
  expect(lines.at(-1)).toBe("0 errors and 1 warning in 2 checks.");
});

test("the JSON document has the most severe status, and remedies only where something is wrong", () => {
  expect(JSON.parse(toJson(findings))).toEqual({ status: "warning", findings });
  expect(worstStatus([])).toBe("ok");
});
