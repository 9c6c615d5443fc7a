import { GoogleAuth } from "google-auth-library";
import type { RemoteKey } from "./remote.ts";

/**
 * A key version in Google Cloud KMS (EC_SIGN_SECP256K1_SHA256). `name` is the whole resource name. Credentials come from
 * Google's usual chain (GOOGLE_APPLICATION_CREDENTIALS, workload identity, the machine's account).
 */
export type GoogleKmsKey = { name: string; endpoint?: string | undefined };

/** One call may take this long with its token, milliseconds: shorter than a lane's lease. */
const TIMEOUT_MS = 4_000;

class KmsError extends Error {
  override readonly name = "KmsError";
  readonly status: number;

  constructor(status: number) {
    super(`Google Cloud KMS answered ${status}`);
    this.status = status;
  }
}

/** Opens it; nothing is asked yet. */
export function openGoogleKmsKey({ name, endpoint = "https://cloudkms.googleapis.com" }: GoogleKmsKey): RemoteKey {
  // Told the project, the library does not go and ask for it.
  const [, projectId = ""] = name.split("/");
  const auth = new GoogleAuth({ scopes: "https://www.googleapis.com/auth/cloudkms", projectId });
  const call = async (path: string, body?: unknown): Promise<Record<string, string>> => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const token = await Promise.race([auth.getAccessToken(), whenAborted(signal)]);
    const response = await fetch(`${endpoint}/v1/${name}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    if (!response.ok) throw new KmsError(response.status);
    return (await response.json()) as Record<string, string>;
  };
  return {
    readPublicKey: async () => (await call("/publicKey")).pem ?? "",
    async signDigest(digest) {
      const { signature } = await call(":asymmetricSign", { digest: { sha256: digest.toString("base64") } });
      return Buffer.from(signature ?? "", "base64");
    },
    isPassing,
  };
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

/** What the library says when no credentials are to be found. */
const NO_CREDENTIALS =
  /could not load the default credentials|cannot read the credential file|no such file|does not exist/i;

/** Without a status nobody has answered. 4xx, and no credentials, say that somebody has to set it up. */
function isPassing(error: unknown): boolean {
  if (error instanceof Error && NO_CREDENTIALS.test(error.message)) return false;
  const status = error instanceof KmsError ? error.status : Number((error as { status?: unknown }).status ?? 0);
  return !(status >= 400 && status < 500) || status === 408 || status === 429;
}
