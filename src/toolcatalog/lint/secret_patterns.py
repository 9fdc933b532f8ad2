"""Formats of secrets, from the public documentation of the services that issue them.

Only formats that can be recognized by themselves are listed: a fixed prefix, or a structure that
hardly anything else has. A key of 32 hexadecimal digits could be anything.
"""

import re
from typing import NamedTuple

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_BASE64_URL = "[A-Za-z0-9_-]"


class SecretKind(NamedTuple):
    """A kind of secret: its service, its keywords and its pattern.

    Every such secret contains one of the keywords, or matches the regular expression `hint`, which
    is quicker to search for. A group in the pattern is the random part of the secret, otherwise the
    whole match is.
    """

    service: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    hint: str = ""

    @property
    def description(self) -> str:
        """What a text with such a secret contains."""
        return self.service if self.service.startswith("a ") else f"a secret of {self.service}"


def _kind(service: str, keywords: str, pattern: str, hint: str = "") -> SecretKind:
    return SecretKind(service, tuple(keywords.split()), re.compile(pattern), hint)


SECRET_KINDS = (
    # clouds and hosting
    _kind("AWS", "AKIA ASIA ABIA ACCA", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    _kind("Google", "AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    _kind("Google", "GOCSPX- ya29.", r"\b(?:GOCSPX-|ya29\.)[A-Za-z0-9_-]{28,}"),
    _kind("Azure", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{80,})=*"),
    _kind("Azure", "SharedAccessKey=", r"SharedAccessKey=([A-Za-z0-9+/]{43})="),
    _kind("Azure", "Q~", r"\b[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    _kind("Azure DevOps", "AZDO", r"\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b"),
    _kind("DigitalOcean", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    _kind("Alibaba Cloud", "LTAI", r"\bLTAI[A-Za-z0-9]{20}\b"),
    _kind("Tencent Cloud", "AKID", r"\bAKID[A-Za-z0-9]{32}\b"),
    _kind("Yandex Cloud", "AQVN", r"\bAQVN[A-Za-z0-9_-]{35,38}"),
    _kind("Scaleway", "SCW", r"\bSCW[A-Z0-9]{17}\b"),
    _kind("Heroku", "HRKU-", rf"\bHRKU-(?:AA{_BASE64_URL}{{58}}|{_UUID})"),
    _kind(
        "Fly.io", "FlyV1 fo1_", r"\b(?:FlyV1 fm[0-9]_[A-Za-z0-9+/=,_-]{100,}|fo1_[A-Za-z0-9_-]{43})"
    ),
    _kind("Netlify", "nfp_", r"\bnfp_[A-Za-z0-9]{36,}\b"),
    _kind("Vercel", "vcp_ vck_", r"\bvc[pk]_[A-Za-z0-9]{24,}\b"),
    _kind("Cloudflare", "v1.0-", r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{146}\b"),
    _kind("Tailscale", "tskey-", r"\btskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    _kind("OpenShift", "sha256~", r"\bsha256~[A-Za-z0-9_-]{43}"),
    _kind("Pulumi", "pul-", r"\bpul-[0-9a-f]{40}\b"),
    _kind("Terraform Cloud", ".atlasv1.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    _kind("Vault", "hvs. hvb.", r"\bhv[sb]\.[A-Za-z0-9_-]{24,}"),
    _kind(
        "Doppler",
        "dp.",
        r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[A-Za-z0-9_-]+\.)?[A-Za-z0-9]{40,44}\b",
    ),
    _kind("1Password", "ops_eyJ", r"\bops_eyJ[A-Za-z0-9+/_-]{200,}"),
    _kind("age", "AGE-SECRET-KEY-1", r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}\b"),
    _kind("Infracost", "ico-", r"\bico-[A-Za-z0-9]{32}\b"),
    # code and builds
    _kind("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    _kind("GitHub", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    _kind("GitLab", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    _kind(
        "GitLab",
        "gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent-",
        r"\bgl(?:dt|rt|cbt|ptt|ft|soat|imt|agent)-[A-Za-z0-9_-]{20,}",
    ),
    _kind("Bitbucket", "ATBB", r"\bATBB[A-Za-z0-9]{28,36}\b"),
    _kind("Docker", "dckr_", r"\bdckr_[op]at_[A-Za-z0-9_-]{27,}"),
    _kind("npm", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _kind("PyPI", "pypi-", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    _kind("RubyGems", "rubygems_", r"\brubygems_[0-9a-f]{48}\b"),
    _kind("crates.io", "cio", r"\bcio[A-Za-z0-9]{32}\b"),
    _kind("NuGet", "oy2", r"\boy2[a-z0-9]{43}\b"),
    _kind("Clojars", "CLOJARS_", r"\bCLOJARS_[0-9a-z]{60}\b"),
    _kind("JFrog", "AKCp cmVmd", r"\b(?:AKCp[A-Za-z0-9]{60,80}|cmVmd[A-Za-z0-9]{59})\b"),
    _kind("Buildkite", "bkua_", r"\bbkua_[0-9a-f]{40}\b"),
    _kind("CircleCI", "CCIPAT_ CCIPRJ_", r"\bCCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}\b"),
    _kind("Sourcegraph", "sgp_", r"\bsgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}\b"),
    _kind("SonarQube", "squ_ sqp_ sqa_", r"\bsq[upa]_[0-9a-f]{40}\b"),
    _kind(
        "Harness",
        "",
        r"\b[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}\b",
        r"[ps]at\.[A-Za-z0-9_-]{22}\.",
    ),
    _kind("Octopus Deploy", "API-", r"\bAPI-[A-Z0-9]{26}\b"),
    _kind("Postman", "PMAK-", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    _kind("ReadMe", "rdme_", r"\brdme_[a-z0-9]{70}\b"),
    # data
    _kind("Databricks", "", r"\bdapi[0-9a-f]{32}(?:-[0-9])?\b", "dapi[0-9a-f]{32}"),
    _kind("MongoDB Atlas", "mdb_sa_sk_", r"\bmdb_sa_sk_[A-Za-z0-9_-]{40}"),
    _kind("PlanetScale", "pscale_", r"\bpscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,64}"),
    _kind("Supabase", "sbp_ sb_secret_", r"\bsb(?:p_([0-9a-f]{40})\b|_secret_[A-Za-z0-9_-]{31})"),
    _kind("Neon", "napi_", r"\bnapi_[a-z0-9]{64}\b"),
    _kind("Aiven", "AVNS_", r"\bAVNS_[A-Za-z0-9_-]{19}"),
    _kind("CockroachDB", "CCDB1_", r"\bCCDB1_[A-Za-z0-9]{22}_[A-Za-z0-9]{40}\b"),
    _kind("Elastic Cloud", "essu_", r"\bessu_[A-Za-z0-9+/=]{60,}"),
    _kind("dbt", "dbtc_ dbtu_", r"\bdbt[cu]_[A-Za-z0-9_-]{30,}"),
    _kind("Prefect", "pnu_ pnb_", r"\bpn[ub]_[A-Za-z0-9]{36}\b"),
    _kind("Airtable", "", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b", r"pat[A-Za-z0-9]{14}\."),
    _kind("Pinecone", "pcsk_", r"\bpcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,}"),
    # monitoring
    _kind("Grafana", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}\b"),
    _kind("Grafana", "glc_", r"\bglc_[A-Za-z0-9+/]{32,}={0,3}"),
    _kind("Sentry", "sntrys_", r"\bsntrys_(eyJ[A-Za-z0-9+/=_-]{60,})"),
    _kind("Sentry", "sntryu_ sntrya_ sntryi_", r"\bsntry[uai]_[0-9a-f]{64}\b"),
    _kind("New Relic", "NRAK- NRAA- NRII-", r"\bNR(?:AK|AA|II)-[A-Za-z0-9_-]{27,32}"),
    _kind("New Relic", "FFFFNRAL", r"\b[0-9a-f]{36}FFFFNRAL\b"),
    _kind("Datadog", "ddapp_", r"\bddapp_[A-Za-z0-9]{34}\b"),
    _kind("Dynatrace", "dt0c dt0s", r"\bdt0[cs][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}\b"),
    _kind("Honeycomb", "ik_", r"\bhc[abn]ik_[a-z0-9]{58}\b"),
    _kind("LaunchDarkly", "sdk- mob-", rf"\b(?:sdk|mob)-{_UUID}\b"),
    _kind("PagerDuty", "token=", r"Token token=([A-Za-z0-9_+-]{20})\b"),
    _kind("Rootly", "rootly_", r"\brootly_[0-9a-f]{64}\b"),
    # messages
    _kind("Slack", "xox xapp-", r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{20,}"),
    _kind(
        "Slack",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services/T[A-Za-z0-9_]{8,}/B[A-Za-z0-9_]{8,}/[A-Za-z0-9]{20,}"
        r"|(?:workflows|triggers)/[A-Za-z0-9_/]{40,})",
    ),
    _kind(
        "Discord",
        "",
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b",
        r"[A-Za-z0-9_-]{8}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{16}",
    ),
    _kind(
        "Discord",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,}",
    ),
    _kind("Telegram", "", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", r"[0-9]:AA"),
    _kind("Twilio", "", r"\bSK[0-9a-f]{32}\b", r"SK[0-9a-f]{8}"),
    _kind("SendGrid", "SG.", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _kind("Mailgun", "", r"\bkey-[0-9a-f]{32}\b", "key-[0-9a-f]{16}"),
    _kind(
        "Mailgun",
        "",
        r"\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b",
        r"[0-9a-f]-[0-9a-f]{8}-[0-9a-f]{8}[^-]",
    ),
    _kind("Mailchimp", "", r"\b[0-9a-f]{32}-us[0-9]{1,2}\b", "[0-9a-f]-us[0-9]"),
    _kind("Brevo", "xkeysib- xsmtpsib-", r"\bx(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b"),
    _kind("Resend", "", r"\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b", "re_[A-Za-z0-9]{8}_"),
    _kind("Klaviyo", "pk_", r"\bpk_[0-9a-f]{34}\b"),
    _kind(
        "Microsoft Teams",
        "webhook.office.com/",
        rf"webhook\.office\.com/webhookb2/{_UUID}@{_UUID}/IncomingWebhook/[0-9a-f]{{32}}/{_UUID}",
    ),
    _kind(
        "Zapier", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/[0-9]{5,}/([A-Za-z0-9]{6,})"
    ),
    _kind("Facebook", "EAA", r"\bEAA[A-Za-z0-9]{90,}\b"),
    _kind("Instagram", "IGQ", r"\bIGQ[A-Za-z0-9_-]{100,}"),
    _kind("X", "AAAAAAAAAAAAAAAAAAAAA", r"\bA{21}([A-Za-z0-9%]{80,})"),
    _kind("LinkedIn", "WPL_AP", r"\bWPL_AP[0-9]\.[A-Za-z0-9]{16}\.[A-Za-z0-9+/]{6,}={0,2}"),
    # work
    _kind("Atlassian", "ATATT3 ATCTT3 ATSTT3", r"\bAT[ACS]TT3[A-Za-z0-9_=-]{100,}"),
    _kind("Linear", "lin_api_ lin_oauth_", r"\blin_(?:api|oauth)_[A-Za-z0-9]{40,}\b"),
    _kind("Notion", "", r"\bsecret_([A-Za-z0-9]{43})\b", "secret_[A-Za-z0-9]{20}"),
    _kind("Notion", "ntn_", r"\bntn_[0-9]{11}[A-Za-z0-9]{35}\b"),
    _kind("Asana", "", r"\b[0-2]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}\b", r"/[0-9]{16}"),
    _kind("Trello", "ATTA", r"\bATTA[0-9a-f]{72}\b"),
    _kind("ClickUp", "pk_", r"\bpk_[0-9]{6,9}_[A-Z0-9]{32}\b"),
    _kind("HubSpot", "pat-", rf"\bpat-(?:na|eu|ap|ca)[0-9]{{1,2}}-{_UUID}\b"),
    _kind("Figma", "figd_ figo_ figu_", r"\bfig[dou]_[A-Za-z0-9_-]{40,}"),
    _kind("Dropbox", "sl.", r"\bsl\.(?:u\.)?[A-Za-z0-9_-]{130,}"),
    _kind("Typeform", "tfp_", r"\btfp_[A-Za-z0-9_.=-]{40,59}"),
    _kind("Contentful", "CFPAT-", r"\bCFPAT-[A-Za-z0-9_-]{43}"),
    _kind("Intercom", "dG9rO", r"\bdG9rO[A-Za-z0-9+/]{40,}={0,2}"),
    _kind("Salesforce", "00D", r"\b00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,}"),
    _kind("Zoho", "1000.", r"\b1000\.[0-9a-f]{32}\.[0-9a-f]{32}\b"),
    _kind("Okta", "SSWS", r"\bSSWS (00[A-Za-z0-9_-]{40})"),
    _kind("Adobe", "p8e-", r"\bp8e-[A-Za-z0-9-]{32}\b"),
    _kind("Frame.io", "fio-u-", r"\bfio-u-[A-Za-z0-9_-]{64}"),
    _kind("Mapbox", "sk.eyJ", r"\bsk\.(eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,})"),
    _kind("Adafruit IO", "aio_", r"\baio_[A-Za-z0-9]{28}\b"),
    # payments and orders
    _kind("Stripe", "k_live_ whsec_", r"\b(?:[sr]k_live|whsec)_[A-Za-z0-9]{16,}"),
    _kind("PayPal", "access_token$", r"\baccess_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}\b"),
    _kind("Square", "sq0atp- sq0csp-", r"\bsq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}"),
    _kind("Square", "EAAA", r"\bEAAA[lE][A-Za-z0-9_-]{59}\b"),
    _kind("Plaid", "access-", rf"\baccess-(?:development|production)-{_UUID}\b"),
    _kind("Mollie", "live_", r"\blive_[A-Za-z0-9]{30}\b"),
    _kind("Razorpay", "rzp_live_", r"\brzp_live_[A-Za-z0-9]{14}\b"),
    _kind("Flutterwave", "FLWSECK-", r"\bFLWSECK-[0-9a-f]{32}-X\b"),
    _kind("Shopify", "shpat_ shpca_ shppa_ shpss_", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    _kind("Shippo", "shippo_live_", r"\bshippo_live_[0-9a-f]{40}\b"),
    _kind("EasyPost", "EZAK", r"\bEZAK[A-Za-z0-9]{54}\b"),
    _kind("Duffel", "duffel_live_", r"\bduffel_live_[A-Za-z0-9_=-]{43}"),
    # models and agents
    _kind("OpenAI or Anthropic", "sk-", r"\bsk-[A-Za-z0-9_-]{32,}"),
    _kind("Hugging Face", "hf_ api_org_", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}\b"),
    _kind("Groq", "gsk_", r"\bgsk_[A-Za-z0-9]{52}\b"),
    _kind("Perplexity", "pplx-", r"\bpplx-[A-Za-z0-9]{48}\b"),
    _kind("xAI", "xai-", r"\bxai-[A-Za-z0-9]{80}\b"),
    _kind("Replicate", "r8_", r"\br8_[A-Za-z0-9]{37}\b"),
    _kind("NVIDIA", "nvapi-", r"\bnvapi-[A-Za-z0-9_-]{60,}"),
    _kind("Together", "tgp_v1_", r"\btgp_v1_[A-Za-z0-9_-]{43}"),
    _kind("ElevenLabs", "", r"\bsk_[0-9a-f]{48}\b", "sk_[0-9a-f]{48}"),
    _kind("LangSmith", "lsv2_", r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b"),
    _kind("Tavily", "tvly-", r"\btvly-(?:[a-z]+-)?[A-Za-z0-9_-]{32,}"),
    _kind("Firecrawl", "fc-", r"\bfc-[0-9a-f]{32}\b"),
    _kind("E2B", "e2b_", r"\be2b_[0-9a-f]{40}\b"),
    _kind("Apify", "apify_api_", r"\bapify_api_[A-Za-z0-9]{36}\b"),
    # any service
    _kind(
        "a JSON Web Token",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}",
    ),
    _kind(
        "a private key",
        "KEY-----",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?:\\+[rn]|\s)*([A-Za-z0-9+/=]{40,})",
    ),
)
