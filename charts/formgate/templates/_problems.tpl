{{/* Fails the rendering if values are invalid or contradict each other, and lists all problems: root */}}
{{- define "formgate.refuse" -}}
{{- $problems := list -}}
{{- $values := .Values -}}
{{- $bundled := .Values.bundled.enabled -}}
{{- if not .Values.access.url -}}
{{- $problems = append $problems "access.url: set the base URL of the identity provider" -}}
{{- end -}}
{{- if not (or .Values.directory.url .Values.platformServer.enabled) -}}
{{- $problems = append $problems "directory.url: set the base URL of the directory service, or set platformServer.enabled" -}}
{{- end -}}
{{- if and .Values.directory.url .Values.platformServer.enabled -}}
{{- $problems = append $problems "directory.url: platformServer.enabled already provides the directory; remove one of them" -}}
{{- end -}}
{{- range $part, $secrets := fromYaml (include "formgate.secretSources" .) -}}
{{- range $variable, $secret := $secrets -}}
{{- $given := and $secret.source.existingSecret.name $secret.source.value -}}
{{- if $given -}}
{{- $problems = append $problems (printf "%s: set either value or existingSecret.name, not both" $secret.path) -}}
{{- end -}}
{{- $isOptional := or (hasPrefix "REDIS_" $variable) (hasPrefix "OTEL_" $variable) -}}
{{- if not (or $isOptional $secret.source.existingSecret.name $secret.source.value $secret.bundled $secret.generated) -}}
{{- $problems = append $problems (printf "%s: set value or existingSecret.name%s" $secret.path (eq $variable "DATABASE_URL" | ternary ", or set bundled.enabled" "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $memory := eq (get .Values.tokenHandler.env "SESSION_STORE" | default "redis") "memory" -}}
{{- with .Values.redis -}}
{{- $topologies := 0 -}}
{{- if or .url.value .url.existingSecret.name -}}{{- $topologies = add1 $topologies -}}{{- end -}}
{{- if .sentinels -}}{{- $topologies = add1 $topologies -}}{{- end -}}
{{- if .clusterNodes -}}{{- $topologies = add1 $topologies -}}{{- end -}}
{{- if gt (int $topologies) 1 -}}
{{- $problems = append $problems "redis: set only one of url, sentinels and clusterNodes" -}}
{{- else if and (gt (int $topologies) 0) $bundled -}}
{{- $problems = append $problems "redis: bundled.enabled already provides Redis; remove url, sentinels and clusterNodes" -}}
{{- else if and (gt (int $topologies) 0) $memory -}}
{{- $problems = append $problems "tokenHandler.env.SESSION_STORE: sessions in memory need no Redis; remove redis.url, redis.sentinels and redis.clusterNodes, or SESSION_STORE" -}}
{{- else if not (or (gt (int $topologies) 0) $bundled $memory) -}}
{{- $problems = append $problems "redis: set one of url, sentinels and clusterNodes, or set bundled.enabled" -}}
{{- end -}}
{{- $credentials := or .username .password.value .password.existingSecret.name -}}
{{- $ofSentinels := or .sentinelUsername .sentinelPassword.value .sentinelPassword.existingSecret.name -}}
{{- if and $bundled (or $credentials $ofSentinels .tls.enabled .tls.ca) -}}
{{- $problems = append $problems "redis: bundled.enabled provides Redis with its own password and without TLS; remove username, password, sentinelUsername, sentinelPassword and tls" -}}
{{- else if and .tls.ca (not .tls.enabled) (or .sentinels .clusterNodes (hasPrefix "redis:" .url.value)) -}}
{{- $problems = append $problems "redis.tls: set enabled, or remove ca; a certificate authority has no effect without TLS" -}}
{{- else if and $ofSentinels (not .sentinels) -}}
{{- $problems = append $problems "redis.sentinels: set the Sentinels, or remove sentinelUsername and sentinelPassword" -}}
{{- end -}}
{{- end -}}
{{- if and $memory $bundled -}}
{{- $problems = append $problems "tokenHandler.env.SESSION_STORE: bundled.enabled provides Redis; remove SESSION_STORE" -}}
{{- end -}}
{{- if and $memory (or .Values.tokenHandler.autoscaling.enabled (gt (int .Values.tokenHandler.replicas) 1)) -}}
{{- $problems = append $problems "tokenHandler.env.SESSION_STORE: pods cannot share sessions in memory; disable tokenHandler.autoscaling and set tokenHandler.replicas to 1" -}}
{{- end -}}
{{- with .Values.tracing -}}
{{- if and .endpoint .samplerArg (not (hasSuffix "traceidratio" .sampler)) -}}
{{- $problems = append $problems "tracing.samplerArg: needs the sampler traceidratio or parentbased_traceidratio" -}}
{{- end -}}
{{- if and (not .endpoint) (or .headers.value .headers.existingSecret.name .samplerArg) -}}
{{- $problems = append $problems "tracing.endpoint: set the base URL of the collector, or remove the other values of tracing" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.platformServer.enabled (not .Values.platformServer.mailFrom) -}}
{{- $problems = append $problems "platformServer.mailFrom: set the sender of notices and codes, such as Forms <forms@example.org>" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- $problems = append $problems "httpRoute.parentRefs: name at least one Gateway" -}}
{{- end -}}
{{- with .Values.networkPolicy -}}
{{- if and .enabled (not (or .ingressController.podLabels .ingressController.namespaceLabels .from)) -}}
{{- $callers := list -}}
{{- if $values.httpRoute.enabled -}}{{- $callers = append $callers "the Gateway" -}}{{- end -}}
{{- if and $values.ingress.enabled (eq $values.ingress.preset "none") -}}{{- $callers = append $callers "the ingress controller" -}}{{- end -}}
{{- range $callers -}}
{{- $problems = append $problems (printf "networkPolicy.ingressController: set podLabels or namespaceLabels of the pods of %s, or list them in networkPolicy.from" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range fromJsonArray (include "formgate.openBesideTargets" .) -}}
{{- $problems = append $problems (printf "networkPolicy.egress.%s.to: list the peers, because egress.targets.to restricts nothing while this rule allows every address at the same ports (%s)" .rule (join ", " .ports)) -}}
{{- end -}}
{{- range $route := list "ingress" "httpRoute" -}}
{{- $setting := get $values $route -}}
{{- if and $setting.enabled $setting.platformServer (not $values.platformServer.enabled) -}}
{{- $problems = append $problems (printf "%s.platformServer: this release runs no platform server; set platformServer.enabled" $route) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.forms.pages.apply.enabled (not .Values.forms.apply.enabled) -}}
{{- $problems = append $problems "forms.apply.enabled: the pages of forms.pages.apply call the intake application; enable it, and set forms.apply.secret" -}}
{{- end -}}
{{- if and (dig "pages" "console" "enabled" false .Values.forms) (not (include "formgate.consoleUrl" .)) -}}
{{- $problems = append $problems "tokenHandler.consoleUrl: set the public URL of the site that serves the console, or a host of the Ingress or HTTPRoute" -}}
{{- end -}}
{{- $consoleUrl := include "formgate.consoleUrl" . -}}
{{- $isLocal := regexMatch "^http://(localhost|127\\.0\\.0\\.1|\\[::1\\])([:/]|$)" $consoleUrl -}}
{{- if contains "*" $consoleUrl -}}
{{- $problems = append $problems (printf "tokenHandler.consoleUrl: set the public URL of the site that serves the console; %s has a wildcard" $consoleUrl) -}}
{{- else if and (hasPrefix "http:" $consoleUrl) (not $isLocal) (not .Values.tokenHandler.allowInsecureRedirectUris) -}}
{{- $problems = append $problems (printf "tokenHandler.consoleUrl: set the https URL of the site that serves the console, or enable ingress.tls or httpRoute.tls; browsers would reach it at %s" $consoleUrl) -}}
{{- end -}}
{{- range $part := list "forms" "tokenHandler" "platformServer" -}}
{{- $resources := (get $values $part).resources | default dict -}}
{{- with (get $values $part).autoscaling -}}
{{- /* Without a request, Kubernetes uses the limit. */ -}}
{{- if and .enabled (not (or (dig "requests" "cpu" "" $resources) (dig "limits" "cpu" "" $resources))) -}}
{{- $problems = append $problems (printf "%s.resources.requests.cpu: set it, because autoscaling.targetCPU is a percentage of it" $part) -}}
{{- end -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.autoscaling: minReplicas is greater than maxReplicas" $part) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $part := list "forms" "tokenHandler" "platformServer" "reconciler" -}}
{{- $own := get $values $part -}}
{{- range $resource, $requested := $own.resources.requests -}}
{{- $limit := get ($own.resources.limits | default dict) $resource -}}
{{- if and $limit (gt (include "formgate.amount" $requested | float64) (include "formgate.amount" $limit | float64)) -}}
{{- $problems = append $problems (printf "%s.resources: the request for %s (%v) is above its limit (%v)" $part $resource $requested $limit) -}}
{{- end -}}
{{- end -}}
{{- $settings := fromJson (include "formgate.podSettings" (dict "root" $ "values" $own)) -}}
{{- $set := concat (keys (fromYaml (include (printf "formgate.environment.%s" $part) $))) (keys (get (fromYaml (include "formgate.secretSources" $)) $part | default dict)) (keys $own.env) -}}
{{- if include "formgate.certificates" $ | fromJson -}}
{{- $set = append $set "NODE_EXTRA_CA_CERTS" -}}
{{- end -}}
{{- $nameservers := dig "nameservers" list ($settings.dnsConfig | default dict) -}}
{{- if and (eq $settings.dnsPolicy "None") (not $nameservers) -}}
{{- $problems = append $problems "pods.dnsConfig.nameservers: set them, or another dnsPolicy; None has no servers of its own" -}}
{{- end -}}
{{- $isDefault := and (eq (len $values.networkPolicy.dns.to) 1) (contains "kube-dns" (toJson $values.networkPolicy.dns.to)) -}}
{{- if and $values.networkPolicy.enabled $isDefault (or $nameservers (has $settings.dnsPolicy (list "Default" "None"))) -}}
{{- $problems = append $problems "networkPolicy.dns.to: list the DNS servers that pods.dnsPolicy or pods.dnsConfig chooses; the default allows only those of the cluster" -}}
{{- end -}}
{{- range $settings.extraVolumes -}}
{{- if has .name (list "tmp" "ca" "seed" "secrets-forms" "secrets-token-handler" "secrets-platform-server" "secrets-reconciler") -}}
{{- $problems = append $problems (printf "%s.pods.extraVolumes: the chart has a volume %s; choose another name" $part .name) -}}
{{- end -}}
{{- end -}}
{{- range $settings.extraEnv -}}
{{- /* A process does not start with both NAME and NAME_FILE. */ -}}
{{- range uniq (list .name (trimSuffix "_FILE" .name)) -}}
{{- if has . $set -}}
{{- $problems = append $problems (printf "%s.pods.extraEnv: the chart or %s.env sets %s" $part $part .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch (include "formgate.schedulePattern" .) .Values.reconciler.schedule) -}}
{{- $problems = append $problems (printf "reconciler.schedule: set a cron schedule of five fields, or @hourly, @daily and so on, instead of %q" .Values.reconciler.schedule) -}}
{{- end -}}
{{- with .Values.checks -}}
{{- $deadline := add (int .timeLimitSeconds) 60 -}}
{{- if and .enabled (lt (int .activeDeadlineSeconds) (int $deadline)) -}}
{{- $problems = append $problems (printf "checks.activeDeadlineSeconds: set at least %d, 60 more than timeLimitSeconds; a check that Kubernetes ends leaves no log" $deadline) -}}
{{- end -}}
{{- end -}}
{{- with .Values.serviceMonitor -}}
{{- if and .enabled (gt (include "formgate.seconds" .scrapeTimeout | float64) (include "formgate.seconds" .interval | float64)) -}}
{{- $problems = append $problems (printf "serviceMonitor.scrapeTimeout: %s is longer than the interval %s" .scrapeTimeout .interval) -}}
{{- end -}}
{{- if and .enabled $values.prometheusRule.enabled (gt (include "formgate.seconds" .interval | float64) 120.0) -}}
{{- $problems = append $problems (printf "serviceMonitor.interval: %s is too long for the rules of prometheusRule, which look back 5 minutes; set at most 2m" .interval) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "formgate.fullname" .)) -}}
{{- $problems = append $problems (printf "fullnameOverride: set a name of lower-case letters, digits and hyphens that begins with a letter; Kubernetes permits no Service named %s" (include "formgate.fullname" .)) -}}
{{- end -}}
{{- /* Check only if Helm is connected to a cluster. Otherwise, as in `helm template`, the cluster's APIs are unknown. */ -}}
{{- if and .Values.serviceMonitor.enabled (lookup "v1" "ServiceAccount" .Release.Namespace "default") (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- $problems = append $problems "serviceMonitor.enabled: the cluster has no ServiceMonitor; install the Prometheus Operator first" -}}
{{- end -}}
{{- if and .Values.prometheusRule.enabled (lookup "v1" "ServiceAccount" .Release.Namespace "default") (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- $problems = append $problems "prometheusRule.enabled: the cluster has no PrometheusRule; install the Prometheus Operator first" -}}
{{- end -}}
{{- if and .Values.prometheusRule.enabled (not .Values.serviceMonitor.enabled) (not .Values.prometheusRule.matchers) -}}
{{- $problems = append $problems "prometheusRule.matchers: without serviceMonitor.enabled, set the labels that select the series of this release" -}}
{{- end -}}
{{- range .Values.prometheusRule.disabledAlerts -}}
{{- if not (contains (printf "alert: %s\n" .) ($.Files.Get "files/alerts.yaml")) -}}
{{- $problems = append $problems (printf "prometheusRule.disabledAlerts: there is no alert %s" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.prometheusRule -}}
{{- if and .enabled .matchers (not (fromJson (include "formgate.recordedSelection" .matchers)).matchers) -}}
{{- $problems = append $problems "prometheusRule.matchers: name at least one label with =, such as namespace=\"forms\", by which the rules select what they record" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.caCertificates.configMap .Values.caCertificates.secret -}}
{{- $problems = append $problems "caCertificates: set either configMap or secret" -}}
{{- end -}}
{{- $problems = concat $problems (fromJsonArray (include "formgate.missingObjects" .)) -}}
{{- if $problems -}}
{{- fail (printf "invalid values:\n  - %s" (join "\n  - " (uniq $problems))) -}}
{{- end -}}
{{- end -}}

{{/*
The problems, in JSON, of the Secrets and ConfigMaps that the values name but the namespace lacks: root. Without them,
the check before a rollout could not start. Tools that render without access to the cluster may create them later.
*/}}
{{- define "formgate.missingObjects" -}}
{{- $named := list -}}
{{- if and .Values.checks.enabled (lookup "v1" "ServiceAccount" .Release.Namespace "default") -}}
{{- range $secrets := fromYaml (include "formgate.secretSources" .) -}}
{{- range $variable, $secret := $secrets -}}
{{- with $secret.source.existingSecret -}}
{{- $named = append $named (dict "path" (printf "%s.existingSecret" $secret.path) "kind" "Secret" "name" .name "key" (.key | default $variable)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "formgate.certificates" . | fromJson -}}
{{- $named = append $named (merge (dict "path" "caCertificates" "key" $.Values.caCertificates.key) .) -}}
{{- end -}}
{{- end -}}
{{- $problems := list -}}
{{- range $named -}}
{{- if .name -}}
{{- $object := lookup "v1" .kind $.Release.Namespace .name -}}
{{- if not $object -}}
{{- $problems = append $problems (printf "%s: the namespace has no %s %s" .path .kind .name) -}}
{{- else if not (hasKey (merge dict ($object.data | default dict) ($object.binaryData | default dict)) .key) -}}
{{- $problems = append $problems (printf "%s: the %s %s has no key %s" .path .kind .name .key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{/*
The egress rules of the token handler that cancel `targets.to`, because they allow every address at a port of `targets`;
in JSON, as {rule, ports}: root
*/}}
{{- define "formgate.openBesideTargets" -}}
{{- $egress := .Values.networkPolicy.egress -}}
{{- $rules := list "access" -}}
{{- if not .Values.platformServer.enabled -}}{{- $rules = append $rules "platform" -}}{{- end -}}
{{- if not .Values.bundled.enabled -}}{{- $rules = concat $rules (list "postgres" "redis") -}}{{- end -}}
{{- if .Values.tracing.endpoint -}}{{- $rules = append $rules "collector" -}}{{- end -}}
{{- /* `--set` gives integers and values files give floats, which `has` would not find equal. */ -}}
{{- $ports := list -}}
{{- range $egress.targets.ports -}}{{- $ports = append $ports (int .) -}}{{- end -}}
{{- $open := list -}}
{{- if and .Values.networkPolicy.enabled $egress.targets.to -}}
{{- range $name := $rules -}}
{{- $rule := get $egress $name -}}
{{- $shared := list -}}
{{- range $rule.ports -}}
{{- if has (int .) $ports -}}{{- $shared = append $shared (int .) -}}{{- end -}}
{{- end -}}
{{- if and $shared (not $rule.to) -}}{{- $open = append $open (dict "rule" $name "ports" $shared) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $open -}}
{{- end -}}

{{/* Regular expression of the schedules that a CronJob accepts: no argument */}}
{{- define "formgate.schedulePattern" -}}
{{- $fields := list -}}
{{- range list "[1-5]?[0-9]" "1?[0-9]|2[0-3]" "[1-9]|[12][0-9]|3[01]" "[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)" "[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat)" -}}
{{- $item := printf "(\\*|(%s)(-(%s))?)(/[1-9][0-9]?)?" . . -}}
{{- $fields = append $fields (printf "%s(,%s)*" $item $item) -}}
{{- end -}}
{{- printf "^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|%s)$" (join " " $fields) -}}
{{- end -}}

{{/* Converts a duration of Prometheus, such as 1m30s or 500ms, to seconds: the duration */}}
{{- define "formgate.seconds" -}}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 "w" 604800.0 "y" 31536000.0 -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9]+(ms|[smhdwy])" . -1 -}}
{{- $seconds = addf $seconds (mulf (regexFind "^[0-9]+" . | float64) (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/* Converts a quantity such as 250m, 1.5 or 512Mi to a number, to compare it with others: the quantity */}}
{{- define "formgate.amount" -}}
{{- /* Helm prints large numbers of values files as in 5e+08. */ -}}
{{- $text := kindIs "float64" . | ternary (printf "%.3f" (float64 .)) (toString .) -}}
{{- $number := regexFind "^[0-9.]+" $text | float64 -}}
{{- $suffix := regexFind "[A-Za-z]+$" $text -}}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 -}}
{{- mulf $number (get $factors $suffix | default 1.0) -}}
{{- end -}}
