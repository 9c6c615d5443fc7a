import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  createDecrypt,
  createEncrypt,
  type EncryptionKey,
  parseEncryptionKey,
} from "../../../../runtime/encryption.ts";
import { adminIn } from "../../../support/admin.ts";

// The first keys are made before there is a database.
const admin = adminIn({ DATABASE_URL: "postgres://127.0.0.1:1/none" });

async function readKey(file: string): Promise<EncryptionKey> {
  const key = parseEncryptionKey(await readFile(file, "utf8"));
  if (!key) throw new Error(`${file} holds no key`);
  return key;
}

test("an operator makes a key pair as two files, and the command prints no private key", async () => {
  const dir = await mkdtemp(join(tmpdir(), "keys "));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, "buyer-data");
  const { code, stdout } = await admin("encryption-keys", "new", file, "--name", "2026-11");
  expect(code).toBe(0);
  const encrypted = await createEncrypt(await readKey(`${file}.pub`))("x", "row_1");
  expect(encrypted.keyId).toBe("2026-11");
  expect(await createDecrypt([await readKey(file)])(encrypted, "row_1")).toBe("x");
  const text = await readFile(file, "utf8");
  expect(stdout).not.toContain(text.trim().slice("2026-11:".length));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await admin("encryption-keys", "new", file, "--name", "2026-12")).toMatchObject({
    code: 1,
    stderr: `${file} cannot be written (EEXIST)\n`,
  });
  expect(await readFile(file, "utf8")).toBe(text);
  expect(await admin("encryption-keys", "new", join(dir, "b"), "--name", "a:b")).toMatchObject({ code: 2 });
});
