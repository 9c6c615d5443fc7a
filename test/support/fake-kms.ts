import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Hex, hexToBytes } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { addCleanup } from "./cleanups.ts";

const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

/** An error with which the fake answers a call. `silent` never answers. */
type KmsError = { status: number; name: string };

/** A key of the fake: its public key, and the signatures that each service makes for a request. */
type FakeKey = {
  publicKey: { der: Buffer; pem: string };
  /** Returns undefined for a request that the service would refuse. */
  signAws(request: Record<string, string>): Promise<Buffer | undefined>;
  signGoogle(request: { digest?: { sha256?: string }; data?: string }): Promise<Buffer | undefined>;
};

/**
 * Starts a fake of the AWS and Google key management services with one secp256k1 key. Every other signature has a high
 * s, which real services may return too.
 */
export async function startKms(privateKey: Hex) {
  const account = privateKeyToAccount(privateKey);
  let signed = 0;
  const sign = async (digest: Buffer): Promise<Buffer> => {
    const signature = await account.sign({ hash: `0x${digest.toString("hex")}` });
    const [r, s] = [signature.slice(2, 66), signature.slice(66, 130)].map((part) => BigInt(`0x${part}`)) as [
      bigint,
      bigint,
    ];
    signed += 1;
    return toDer(r, signed % 2 ? N - s : s);
  };
  const kms = await serveKms({
    publicKey: exportPublicKey(account.publicKey),
    signAws: async ({ Message = "", MessageType, SigningAlgorithm }) =>
      MessageType === "DIGEST" && SigningAlgorithm === "ECDSA_SHA_256" ? sign(fromBase64(Message)) : undefined,
    signGoogle: async ({ digest }) => (digest?.sha256 ? sign(fromBase64(digest.sha256)) : undefined),
  });
  return { ...kms, address: account.address };
}

/**
 * Starts a fake of both services with one Ed25519 key. It refuses digests, as the services do. `signsWith` is the seed of
 * another key, which then makes the signatures.
 */
export function startEd25519Kms(seed: Uint8Array, { signsWith = seed } = {}) {
  const signMessage = (encoded: string) => sign(null, fromBase64(encoded), readSeed(signsWith));
  return serveKms({
    publicKey: encodePublicKey(createPublicKey(readSeed(seed))),
    signAws: async ({ Message = "", MessageType, SigningAlgorithm }) =>
      MessageType === "RAW" && SigningAlgorithm === "ED25519_SHA_512" ? signMessage(Message) : undefined,
    signGoogle: async ({ data, digest }) => (data && !digest ? signMessage(data) : undefined),
  });
}

function readSeed(seed: Uint8Array): KeyObject {
  const key = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

const fromBase64 = (text: string) => Buffer.from(text, "base64");

async function serveKms({ publicKey, signAws, signGoogle }: FakeKey) {
  const calls: string[] = [];
  let errors: KmsError[] = [];

  const answerAws = async (target: string, body: Record<string, string>) => {
    if (target.endsWith("GetPublicKey")) return { PublicKey: publicKey.der.toString("base64") };
    const Signature = (await signAws(body))?.toString("base64");
    return Signature === undefined ? undefined : { Signature };
  };
  const answerGoogle = async (path: string, body: Record<string, never>) => {
    if (path === "/token")
      return { access_token: "test", expires_in: 3_600, token_type: "Bearer", issued_token_type: ACCESS_TOKEN };
    if (path.endsWith("/publicKey")) return { pem: publicKey.pem };
    const signature = (await signGoogle(body))?.toString("base64");
    return signature === undefined ? undefined : { signature };
  };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const text = await bodyOf(request);
    const target = request.headers["x-amz-target"];
    const call = String(target ?? request.url);
    calls.push(call);
    const error = call === "/token" ? undefined : errors.shift();
    // This call never gets an answer.
    if (error?.name === "silent") return;
    const body = text.startsWith("{") ? JSON.parse(text) : {};
    const answer = error
      ? { __type: error.name, error: { status: error.name } }
      : await (target ? answerAws(String(target), body) : answerGoogle(String(request.url), body));
    const status = error?.status ?? (answer ? 200 : 400);
    response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify(answer ?? { __type: "ValidationException" }));
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  addCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    calls,
    /** Sets the errors of the next calls. */
    failNext(next: KmsError[]) {
      errors = [...next];
    },
  };
}

/**
 * Sets this process's credentials: any key pair for AWS, and for Google a workload identity whose tokens the fake
 * issues.
 */
export async function setCloudCredentials(tokenUrl: string): Promise<void> {
  const folder = await makeScratch("kms");
  const [file, subject] = [join(folder, "account.json"), join(folder, "subject")];
  const account = {
    type: "external_account",
    audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/test",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: `${tokenUrl}/token`,
    credential_source: { file: subject },
  };
  await writeFile(subject, "test subject");
  await writeFile(file, JSON.stringify(account));
  Object.assign(process.env, {
    GOOGLE_APPLICATION_CREDENTIALS: file,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: "eu-central-1",
  });
}

function exportPublicKey(publicKey: Hex): { der: Buffer; pem: string } {
  const bytes = Buffer.from(hexToBytes(publicKey));
  const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33)].map((part) => part.toString("base64url"));
  const key = createPublicKey({ key: { kty: "EC", crv: "secp256k1", x: x ?? "", y: y ?? "" }, format: "jwk" });
  return encodePublicKey(key);
}

function encodePublicKey(key: KeyObject): { der: Buffer; pem: string } {
  return {
    der: key.export({ type: "spki", format: "der" }),
    pem: key.export({ type: "spki", format: "pem" }).toString(),
  };
}

/** Returns a public key on another curve (P-256), as DER. */
export function otherCurve(): Buffer {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return createPublicKey(createPrivateKey(privateKey.export({ type: "pkcs8", format: "pem" }))).export({
    type: "spki",
    format: "der",
  });
}

function toDer(r: bigint, s: bigint): Buffer {
  const integer = (number: bigint) => {
    const hex = number.toString(16);
    const bytes = Buffer.from(hex.length % 2 ? `0${hex}` : hex, "hex");
    const unsigned = (bytes[0] ?? 0) > 127 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes;
    return Buffer.concat([Buffer.from([0x02, unsigned.length]), unsigned]);
  };
  const parts = Buffer.concat([integer(r), integer(s)]);
  return Buffer.concat([Buffer.from([0x30, parts.length]), parts]);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}
