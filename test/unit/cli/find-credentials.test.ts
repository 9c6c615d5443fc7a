import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findCredentials } from "../../../cli/find-credentials.ts";
import { writeProfile } from "../../../cli/stored-profile.ts";
import { registerStack, unregisterStack } from "../../../local/stack-registration.ts";

const merchantId = `mrch_${"a".repeat(32)}`;
const home = await mkdtemp(join(tmpdir(), "pay-"));
afterAll(() => rm(home, { recursive: true }));

/** Returns an own place for files, which are at their usual paths below it. */
async function makePlace(name: string) {
  const folder = join(home, name);
  const cwd = join(folder, "shop", "src");
  await mkdir(cwd, { recursive: true });
  return { folder, cwd, env: { HOME: folder } as Record<string, string> };
}

function makeStack(name: string) {
  const caller = (mode: string) => ({ apiKey: `svc_${mode}${name}`, merchantId });
  const chain = { chain: "", buyers: [] };
  return { baseUrl: `http://${name}`, test: caller("test_"), live: caller(""), evm: chain, solana: chain };
}

async function writeStack(folder: string, name: string, supervisor = process.pid): Promise<string> {
  await mkdir(join(folder, ".local"), { recursive: true });
  const file = join(folder, ".local", "stack.json");
  await writeFile(file, JSON.stringify({ ...makeStack(name), processes: { supervisor } }), { mode: 0o600 });
  return file;
}

const profile = { url: "http://stored", apiKey: "svc_test_stored", merchantId };

test("options come before the environment, then the stored profile, then the stack of a parent folder", async () => {
  const place = await makePlace("order");
  await writeStack(place.folder, "stack");
  expect(await findCredentials(place, {})).toMatchObject({ url: "http://stack", apiKey: "svc_test_stack" });
  await writeProfile(place.env, profile);
  expect(await findCredentials(place, {})).toMatchObject(profile);
  const env = { ...place.env, PAY_URL: "http://env/", PAY_API_KEY: "svc_test_env" };
  const fromEnv = { url: "http://env", apiKey: "svc_test_env", merchantId: undefined };
  expect(await findCredentials({ ...place, env }, {})).toMatchObject(fromEnv);
  const options = { url: "http://option", apiKey: "svc_test_option", merchant: `mrch_${"b".repeat(32)}` };
  expect(await findCredentials({ ...place, env }, options)).toMatchObject({
    url: "http://option",
    apiKey: "svc_test_option",
    merchantId: options.merchant,
  });
});

test("a key is never sent to a service that it does not come with", async () => {
  const place = await makePlace("pairs");
  await writeProfile(place.env, profile);
  await expect(findCredentials(place, { url: "http://other" })).rejects.toThrow("--url is set without --api-key");
  const withKey = { ...place, env: { ...place.env, PAY_API_KEY: "svc_test_env" } };
  await expect(findCredentials(withKey, {})).rejects.toThrow("PAY_API_KEY is set without PAY_URL");
  await expect(findCredentials(withKey, { url: "http://other" })).rejects.toThrow("--url is set without --api-key");
  const withUrl = { ...place, env: { ...place.env, PAY_URL: "http://env" } };
  const option = { apiKey: "svc_test_option" };
  await expect(findCredentials(withUrl, option)).rejects.toThrow("--api-key is set without --url");
});

test("a stack's file that others can read or write is ignored, and the user's own stack counts", async () => {
  const place = await makePlace("planted");
  const own = await makePlace("own");
  await writeStack(own.folder, "own");
  await registerStack(place.env, join(own.folder, ".local"));
  const planted = await writeStack(join(place.folder, "shop"), "planted");
  expect(await findCredentials(place, {})).toMatchObject({ url: "http://planted" });
  for (const mode of [0o644, 0o620, 0o602]) {
    await chmod(planted, mode);
    expect([mode, await findCredentials(place, {})]).toMatchObject([mode, { url: "http://own" }]);
  }
});

test.runIf(process.getuid?.() === 0)("a stack's file of another user is ignored", async () => {
  const place = await makePlace("foreign");
  const planted = await writeStack(place.folder, "planted");
  expect(await findCredentials(place, {})).toMatchObject({ url: "http://planted" });
  await chown(planted, 65_534, 65_534);
  await expect(findCredentials(place, {})).rejects.toThrow("no API key was found");
});

test.each([
  ["a process group as its supervisor", { processes: { supervisor: -1 } }],
  ["every process of the group as its supervisor", { processes: { supervisor: 0 } }],
  ["the first process as its supervisor", { processes: { supervisor: 1 } }],
  ["a supervisor that is no number", { processes: { supervisor: `${process.pid}` } }],
  ["no processes", { processes: undefined }],
  ["a key that is no text", { test: { apiKey: 1, merchantId } }],
  ["no buyers", { evm: { chain: "" } }],
])("a stack's file with %s is ignored", async (what, change) => {
  const place = await makePlace(what);
  const file = await writeStack(place.folder, "stack");
  expect(await findCredentials(place, {})).toMatchObject({ url: "http://stack" });
  const stack = { ...makeStack("stack"), processes: { supervisor: process.pid }, ...change };
  await writeFile(file, JSON.stringify(stack));
  await expect(findCredentials(place, {})).rejects.toThrow("no API key was found");
});

test("a merchant's id or a key that could add a line to a file is refused, and a URL loses its line feeds", async () => {
  const place = await makePlace("lines");
  const line = "\nNODE_OPTIONS=--import=/tmp/x.mjs";
  await writeProfile(place.env, { ...profile, merchantId: `${merchantId}${line}` });
  await expect(findCredentials(place, {})).rejects.toThrow("expected a merchant's id");
  await writeProfile(place.env, { ...profile, apiKey: `svc_test_1${line}` });
  await expect(findCredentials(place, {})).rejects.toThrow("is not an API key");
  await writeProfile(place.env, { ...profile, url: "http://stored/\npath x" });
  expect(await findCredentials(place, {})).toMatchObject({ url: "http://stored/path%20x" });
});

test("a registered stack is found from every folder until it has ended", async () => {
  const [place, elsewhere] = [await makePlace("registered"), await makePlace("elsewhere")];
  const { env } = place;
  await registerStack(env, join(place.folder, ".local"));
  const find = () => findCredentials({ cwd: elsewhere.cwd, env }, {});
  await expect(find()).rejects.toThrow(expect.objectContaining({ exitCode: 2 }));
  await writeStack(place.folder, "stack");
  expect(await find()).toMatchObject({ url: "http://stack" });
  await writeStack(place.folder, "stack", 2 ** 30);
  await expect(find()).rejects.toThrow("no API key was found");
  const registration = join(place.folder, ".local", "state", "payment-service", "stack.json");
  expect((await stat(registration)).mode & 0o777).toBe(0o600);
  await unregisterStack(env, join(elsewhere.folder, ".local"));
  await stat(registration);
  await unregisterStack(env, join(place.folder, ".local"));
  await expect(stat(registration)).rejects.toThrow("ENOENT");
});

test("a live key needs --live, and --live takes the live account of the stack", async () => {
  const place = await makePlace("live");
  await writeStack(place.folder, "stack");
  await writeProfile(place.env, profile);
  expect(await findCredentials(place, { live: true })).toMatchObject({ apiKey: "svc_stack", url: "http://stack" });
  const env = { ...place.env, PAY_URL: "http://env", PAY_API_KEY: "svc_live" };
  await expect(findCredentials({ ...place, env }, {})).rejects.toThrow("is a live key");
});
