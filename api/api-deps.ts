import type { ReadReplica } from "../db/read-replica.ts";
import type { BuyerDataDeps } from "../payments/buyer-data/collected-data.ts";
import type { RunList } from "../payments/lifecycle/list-limits.ts";
import type { CredentialCache } from "../payments/merchants/credential-cache.ts";
import type { KeyUses } from "../payments/merchants/key-uses.ts";
import type { LogoJobs } from "../payments/merchants/logo-jobs.ts";
import type { PaymentDeps } from "../payments/payment-deps.ts";
import type { Encrypt } from "../runtime/encryption.ts";
import type { ReadinessDeps } from "../runtime/probes.ts";
import type { Limits } from "./http/rate-limits.ts";
import type { RequestLog } from "./http/request-log.ts";
import type { StatusCache } from "./polling/status-cache.ts";
import type { Waiters } from "./polling/waiters.ts";

/** The dependencies of the API. main.ts creates them once; tests create their own. */
export type ApiDeps = PaymentDeps &
  BuyerDataDeps & {
    /** Serves lists and statements, if one is configured; see `readLagging`. */
    replica: ReadReplica | undefined;
    waiters: Waiters;
    statuses: StatusCache;
    limits: Limits;
    requestLog: RequestLog;
    keyUses: KeyUses;
    logoJobs: LogoJobs;
    runList: RunList;
    /** Encrypts the secret of a webhook endpoint for the workers. */
    encryptWebhookSecret: Encrypt;
    /** Returns what is wrong with the URL of a webhook endpoint; undefined for one that is allowed. */
    validateUrl: (url: string) => string | undefined;
    credentials: CredentialCache;
    /** How the process finds out whether it is ready. */
    readiness: ReadinessDeps;
    /** Retention of buyers' data, milliseconds. */
    collectedDataMs: number;
    /** Proxies that are trusted to name the caller's address: addresses and CIDR ranges. */
    trustedProxies: readonly string[];
    /** Runs a request in a context that adds its id to its jobs and log lines. */
    inContext: (fields: { requestId: string }, work: () => void) => void;
    /** The public base URL of the service, without a slash at the end; payment links begin with it. */
    publicUrl: string;
    /** The operator's terms of service and privacy policy: https URLs. */
    legal: { termsUrl: string | undefined; privacyUrl: string | undefined };
    /** Schemes of the apps that the checkout page may link back to. */
    appSchemes: ReadonlySet<string>;
  };
