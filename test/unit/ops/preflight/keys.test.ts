import { expect, test } from "vitest";
import { keyCheck } from "../../../../ops/preflight/keys.ts";
import { ConfigError } from "../../../../runtime/config.ts";

const workers = { SIGNER: "unix:/run/signer.sock" };
const signer = { SIGNER_LISTEN: "unix:/run/signer.sock" };
const missing = () => Promise.reject(new ConfigError("the key is missing"));

/** Returns what a check of one key finds: its status, and the remedy if it has one. */
async function check(env: NodeJS.ProcessEnv, role: string, signs: () => Promise<boolean>) {
  const [outcome] = await keyCheck(env, { role, address: "0x0a", signs }).run();
  return outcome && { status: outcome.status, text: "remedy" in outcome ? outcome.remedy : outcome.detail };
}

test.each([
  ["the treasury's", "treasury", workers, "signer"],
  ["a lane's", "lane 0", signer, "workers"],
])(
  "%s key may be missing on the machine that does not need it, and is a warning there",
  async (_what, role, env, owner) => {
    const elsewhere = `not on this machine: run preflight on the machine of the ${owner} too`;
    expect(await check(env, role, missing)).toEqual({ status: "ok", text: elsewhere });
    expect(await check(env, role, async () => false)).toEqual({ status: "ok", text: elsewhere });
    const remedy = `Remove it from here: only the machine of the ${owner} needs it.`;
    expect(await check(env, role, async () => true)).toEqual({ status: "warning", text: remedy });
  },
);

test.each([
  ["the treasury's", "treasury", [signer, { ...signer, ...workers }, { SIGNER: "embedded" }]],
  ["a lane's", "lane 0", [workers, { ...signer, ...workers }, { SIGNER: "embedded" }]],
])("%s key must sign on each machine that needs it", async (_what, role, machines) => {
  for (const env of machines) {
    expect(await check(env, role, async () => true)).toEqual({ status: "ok", text: "signs for 0x0a" });
    expect(await check(env, role, async () => false)).toMatchObject({ status: "error" });
    await expect(check(env, role, missing)).rejects.toThrow("the key is missing");
  }
});

test.each([
  ["the treasury's", "treasury", "signer", "SIGNER,"],
  ["a lane's", "lane 0", "workers", "SIGNER_LISTEN,"],
])(
  "without a variable that says whose machine it is, %s missing key is an error that names its machine",
  async (_what, role, owner, variable) => {
    const found = await check({}, role, missing);
    expect(found?.status).toBe("error");
    expect(found?.text).toMatch(`Run preflight on the machine of the ${owner}`);
    expect(found?.text).toContain(variable);
    expect(await check({}, role, async () => true)).toEqual({ status: "ok", text: "signs for 0x0a" });
  },
);
