import { GoogleAuth } from "google-auth-library";
import { z } from "zod";
import type { RemoteKey, SigningScheme } from "./remote-key.ts";

/**
 * A key version in Google Cloud KMS (EC_SIGN_SECP256K1_SHA256 or EC_SIGN_ED25519). `name` is the full resource name.
 * Credentials are Google's Application Default Credentials (GOOGLE_APPLICATION_CREDENTIALS, workload identity, the machine's
 * service account).
 */
export type GoogleKmsKey = { name: string; endpoint?: string | undefined };

/** Timeout of one call with its access token, in milliseconds. It is shorter than a lane's lease. */
const TIMEOUT_MS = 4_000;

/** The members that we use of the answers to publicKey and asymmetricSign. */
const Answer = z.object({ pem: z.string().optional(), signature: z.string().optional() });

class KmsError extends Error {
  override readonly name = "KmsError";
  readonly status: number;

  constructor(status: number) {
    super(`Google Cloud KMS answered ${status}`);
    this.status = status;
  }
}

/**
 * How each scheme is called. EC_SIGN_ED25519 is EdDSA in pure mode, which takes the message as `data` and no digest:
 * https://cloud.google.com/kms/docs/reference/rest/v1/CryptoKeyVersionAlgorithm and
 * https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys.cryptoKeyVersions/asymmetricSign
 */
const bodyOfScheme: Record<SigningScheme, (message: string) => unknown> = {
  secp256k1: (sha256) => ({ digest: { sha256 } }),
  ed25519: (data) => ({ data }),
};

/** Opens the key without sending a request. */
export function openGoogleKmsKey(
  { name, endpoint = "https://cloudkms.googleapis.com" }: GoogleKmsKey,
  scheme: SigningScheme,
): RemoteKey {
  // With a project id the library makes no request to find it.
  const [, projectId = ""] = name.split("/");
  const auth = new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloudkms", projectId });
  const call = async (path: string, body?: unknown): Promise<z.infer<typeof Answer>> => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const token = await Promise.race([auth.getAccessToken(), whenAborted(signal)]);
    const response = await fetch(`${endpoint}/v1/${name}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    if (!response.ok) throw new KmsError(response.status);
    return Answer.parse(await response.json());
  };
  return {
    readPublicKey: async () => (await call("/publicKey")).pem ?? "",
    async sign(message) {
      const body = bodyOfScheme[scheme](Buffer.from(message).toString("base64"));
      const { signature } = await call(":asymmetricSign", body);
      return Buffer.from(signature ?? "", "base64");
    },
    isTransient,
  };
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

/** The library's messages for missing credentials. */
const NO_CREDENTIALS =
  /could not load the default credentials|cannot read the credential file|no such file|does not exist/i;

/** An error without a status is a missing answer. A 4xx and missing credentials need the operator. */
function isTransient(error: unknown): boolean {
  if (error instanceof Error && NO_CREDENTIALS.test(error.message)) return false;
  const status = error instanceof Error && "status" in error ? Number(error.status ?? 0) : 0;
  return !(status >= 400 && status < 500) || status === 408 || status === 429;
}
