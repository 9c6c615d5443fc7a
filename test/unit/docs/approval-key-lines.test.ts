import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isSignedBy, readStatement } from "../../../signer/statements.ts";

const page = readFileSync(new URL("../../../docs/integration.md", import.meta.url), "utf8");
const section = page.split("\n## Approval keys")[1]?.split("\n## ")[0] ?? "";
const lines = [...section.matchAll(/```bash\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");
const [makeByOpenssl = "", makeByNode = "", write = "", signByOpenssl = "", signByNode = ""] = lines;

const subject = {
  action: "approve destination",
  merchantId: "mrch_1",
  asset: `eip155:8453/erc20:0x${"a1".repeat(20)}`,
  receiver: `0x${"d1".repeat(20)}`,
} as const;

test.each([
  ["OpenSSL", makeByOpenssl, signByOpenssl],
  ["Node", makeByNode, signByNode],
])(
  "the documented lines for %s make a key pair and a signature that the service and the signer accept",
  (_tool, make, sign) => {
    const cwd = mkdtempSync(join(tmpdir(), "approval-key-"));
    onTestFinished(() => rmSync(cwd, { recursive: true }));
    const { asset, merchantId, receiver } = subject;
    const of = { DEPLOYMENT: "test", ASSET: asset, MERCHANT: merchantId, RECEIVER: receiver };
    const run = (script: string) =>
      execFileSync("bash", ["-euc", script], { cwd, encoding: "utf8", env: { ...process.env, ...of } }).trim();
    const publicKey = run(make);
    run(write);
    const text = readFileSync(join(cwd, "statement.txt"), "utf8");
    expect(readStatement(text)).toMatchObject({ deployment: "test", subject });
    const signature = run(sign);
    expect(signature).toMatch(/^[A-Za-z0-9+/]{86}==$/);
    expect(isSignedBy(publicKey, { text, signature })).toBe(true);
  },
);
